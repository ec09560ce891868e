#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {

// Statistics of the run times of one graph.
struct RunTimeStatistics {
  std::int64_t min = 0, max = 0;  // ns; 0 in test splits
  std::int64_t distinct_configs = 0;
  std::int64_t repeated_configs = 0;  // configurations measured more than once
  std::int64_t repeated_rows = 0;     // their measurements
  std::int64_t most_repeats = 0;      // largest number for one configuration
  // Measurement noise: quartiles, over the repeated configurations, of max / min - 1 of the ranked
  // value. NumPy's percentiles (linear). Nothing if no configuration is repeated, or run times are
  // 0.
  std::optional<std::array<double, 3>> spread;
};

RunTimeStatistics run_time_statistics(const RunTimes& times);

struct GraphStatistics {
  GraphEntry entry;
  RunTimeStatistics times;
};

// All graphs of a collection in the order (split, name). Throws DataError.
std::vector<GraphStatistics> collection_statistics(const std::filesystem::path& shard_root,
                                                   const Collection& collection);

}  // namespace tpudist
