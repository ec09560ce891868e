#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/schema/collection.hpp"
#include "statistics/measurement_checks.hpp"

namespace tpudist {

// What the checks of its run times found in one graph.
struct CheckedGraph {
  std::string name, split;
  std::int64_t measurements = 0;
  bool has_times = false;  // false: a test split, whose run times are 0
  std::vector<MeasurementCheck> checks;
  std::vector<MeasurementCheck> suspicions;  // those of them that make the graph suspect
};

struct CheckedCollection {
  Collection collection;
  MeasuredOrder order = MeasuredOrder::searched;
  std::vector<CheckedGraph> graphs;  // in the order (split, name)
};

// The order in which the configurations of a collection were measured, by its name: random where it
// is layout:X:random, else searched (a genetic search, an enumeration of tile sizes, unknown).
MeasuredOrder measured_order(const Collection& collection);

// Checks the run times of all graphs of a converted collection, several graphs at a time, by their
// order in the shards, which is that of the NPZ files. What is suspect is judged over all checks of
// the collection together. Reads run times alone. Throws DataError or IoError.
CheckedCollection check_collection(const std::filesystem::path& shard_root,
                                   const Collection& collection, std::optional<MeasuredOrder> order,
                                   ThreadPool& pool);

// What leaves the suspect graphs of a split out of training or evaluation, for a command line:
// 'data.exclude.train=["a", "b"]'. Empty where there are none, and for the test split.
std::string exclusion_of(const CheckedCollection& checked, std::string_view split);

}  // namespace tpudist
