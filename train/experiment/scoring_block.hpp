#pragma once

#include <algorithm>
#include <cstdint>

namespace tpudist {

// `evaluate.slate`: scores all rows of a graph in slates, for networks in which the score of a
// configuration depends on the rest of its slate. The distinct configurations of a graph are
// permuted and cut into nearly equal slates of at most `configs`; each slate is computed whole and
// alone. The score is the plain mean over `permutations` permutations. The slates are a pure
// function of these values and of the graph.
struct ScoringSlates {
  std::int64_t configs = 0;  // 0: no slates; the scores do not depend on the block size then
  int permutations = 1;
  std::uint64_t seed = 1;

  bool wanted() const { return configs > 0; }
  bool operator==(const ScoringSlates&) const = default;
};

// The number of configurations of a graph that are scored in one plan. More configurations share
// more rows, but a larger plan needs more memory. The number is a pure function of recorded config
// values, graph and network, never of ranks, threads or free memory.
struct ScoringBlock {
  std::int64_t configs = 0;     // evaluate.block; 0 = auto: by rows
  std::int64_t rows = 400'000;  // evaluate.block_rows: nodes x configurations of a block
  // evaluate.plan_floats: limit for the floats in the states of all layers of a block's plan, for
  // one member. The states determine the memory of a block.
  std::int64_t plan_floats = 56'000'000;
  ScoringSlates slates;                      // if wanted, the slates are the blocks
  static constexpr std::int64_t least = 32;  // block_rows allows at least this many configurations

  // Whether the size of blocks is given, independent of their memory.
  bool is_fixed() const { return configs > 0 || slates.wanted(); }

  // The most configurations of a block, before `plan_floats` is applied.
  std::int64_t size(std::int64_t nodes) const {
    if (slates.wanted()) return slates.configs;
    return configs > 0 ? configs : std::max(least, rows / std::max<std::int64_t>(nodes, 1));
  }
  // How many members to score together on a plan with `floats` numbers in its states: on any plan
  // no more memory than eight members on the largest that plan_floats allows, 1.8 GB.
  int members(double floats) const {
    constexpr double kMembers = 8, kMost = 1 << 20;
    return static_cast<int>(std::clamp(
        kMembers * static_cast<double>(plan_floats) / std::max(floats, 1.0), 1.0, kMost));
  }
  // Whether a plan with `floats` numbers in its states is small enough, or cannot be made smaller.
  bool fits(double floats, std::int64_t block_configs) const {
    return is_fixed() || block_configs == 1 || floats <= static_cast<double>(plan_floats);
  }
};

}  // namespace tpudist
