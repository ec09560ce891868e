#pragma once

#include <algorithm>
#include <cstdint>

namespace tpudist {

// `evaluate.slate`: all rows of a graph are scored in slates, as a network needs whose score of one
// configuration depends on the others beside it. The distinct configurations of a graph, shuffled
// by a permutation, are cut into nearly equal slates of at most `configs`, each computed by itself
// and whole; the score is the plain mean over `permutations` of them. Scores are a pure function of
// these values and of the graph.
struct ScoringSlates {
  std::int64_t configs = 0;  // 0: no slates; blocks of any cut give the same scores then
  int permutations = 1;
  std::uint64_t seed = 1;

  bool wanted() const { return configs > 0; }
  bool operator==(const ScoringSlates&) const = default;
};

// How many configurations of a graph are scored in one plan: more of them share more rows, but a
// larger plan needs more memory. What comes of it is a pure function of recorded config values and
// of graph and network, never of ranks, threads or free memory.
struct ScoringBlock {
  std::int64_t configs = 0;     // evaluate.block; 0 = auto: by rows
  std::int64_t rows = 400'000;  // evaluate.block_rows: nodes x configurations of a block
  // evaluate.plan_floats: numbers in the states of all layers of a block's plan, of one member. The
  // memory of a block goes by them.
  std::int64_t plan_floats = 56'000'000;
  ScoringSlates slates;                      // where they are wanted, they are the blocks
  static constexpr std::int64_t least = 32;  // configurations that block_rows allows at least

  // Whether the size of blocks is given, whatever their memory.
  bool is_fixed() const { return configs > 0 || slates.wanted(); }

  // The most configurations of a block, before `plan_floats` is looked at.
  std::int64_t size(std::int64_t nodes) const {
    if (slates.wanted()) return slates.configs;
    return configs > 0 ? configs : std::max(least, rows / std::max<std::int64_t>(nodes, 1));
  }
  // Whether a plan with so many numbers in its states is small enough, or cannot be made smaller.
  bool fits(double floats, std::int64_t block_configs) const {
    return is_fixed() || block_configs == 1 || floats <= static_cast<double>(plan_floats);
  }
};

}  // namespace tpudist
