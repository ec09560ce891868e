#pragma once

#include <algorithm>
#include <cstdint>

namespace tpudist {

// Configurations of a graph that are scored in one plan: more of them share more rows. A pure
// function of recorded config values and the graph, never of ranks or memory.
struct ScoringBlock {
  std::int64_t configs = 0;     // evaluate.block; 0 = auto: by rows
  std::int64_t rows = 400'000;  // evaluate.block_rows: nodes x configurations of a block
  static constexpr std::int64_t least = 32;  // configurations, where it goes by rows

  std::int64_t size(std::int64_t nodes) const {
    return configs > 0 ? configs : std::max(least, rows / std::max<std::int64_t>(nodes, 1));
  }
};

}  // namespace tpudist
