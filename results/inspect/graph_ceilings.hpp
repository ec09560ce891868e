#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/schema/collection.hpp"
#include "statistics/noise/noise_ceiling.hpp"

namespace tpudist {

// The noise ceiling of one graph, over all its rows.
struct GraphCeiling {
  std::string name, split;
  std::int64_t measurements = 0, distinct_configs = 0;
  NoiseCeiling ceiling;
};

// The ceilings of all graphs of a converted collection, in the order (split, name). Computes
// several graphs at a time; the result does not depend on the number of threads. Tile kernels (not
// scored by Kendall's tau) and graphs without run times (test splits) have a reason instead of a
// ceiling. Reads only run times. Throws DataError or IoError.
std::vector<GraphCeiling> collection_ceilings(const std::filesystem::path& shard_root,
                                              const Collection& collection, ThreadPool& pool);

// The mean over the graphs of a split that have a ceiling; nothing if none has.
struct MeanCeiling {
  std::optional<double> value;
  std::int64_t graphs = 0, of = 0;  // number of graphs with a ceiling, and of all graphs
};
MeanCeiling mean_ceiling(std::span<const GraphCeiling> graphs, std::string_view split);

}  // namespace tpudist
