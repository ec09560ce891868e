#pragma once

#include <algorithm>
#include <cstdint>

namespace tpudist {

// How many configurations of a graph are scored in one plan: more of them share more rows, but a
// larger plan needs more memory. What comes of it is a pure function of recorded config values and
// of graph and network, never of ranks, threads or free memory.
struct ScoringBlock {
  std::int64_t configs = 0;     // evaluate.block; 0 = auto: by rows
  std::int64_t rows = 400'000;  // evaluate.block_rows: nodes x configurations of a block
  // evaluate.plan_floats: numbers in the states of all layers of a block's plan, of one member. The
  // memory of a block goes by them.
  std::int64_t plan_floats = 56'000'000;
  static constexpr std::int64_t least = 32;  // configurations that block_rows allows at least

  // The most configurations of a block, before `plan_floats` is looked at.
  std::int64_t size(std::int64_t nodes) const {
    return configs > 0 ? configs : std::max(least, rows / std::max<std::int64_t>(nodes, 1));
  }
  // Whether a plan with so many numbers in its states is small enough, or cannot be made smaller.
  bool fits(double floats, std::int64_t block_configs) const {
    return configs > 0 || block_configs == 1 || floats <= static_cast<double>(plan_floats);
  }
};

}  // namespace tpudist
