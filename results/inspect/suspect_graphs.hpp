#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/schema/collection.hpp"
#include "statistics/noise/measurement_checks.hpp"

namespace tpudist {

struct CheckedCollection {
  // The results of the checks of one graph's run times.
  struct Graph {
    std::string name, split;
    std::int64_t measurements = 0;
    bool has_times = false;     // false: a test split, with run times 0
    std::int64_t filtered = 0;  // measurements that the entropy filter would remove
    std::vector<MeasurementCheck> checks;
    std::vector<MeasurementCheck> suspicions;  // those that make the graph suspect
  };

  Collection collection;
  double least_entropy = 0;  // threshold of the entropy filter: 0.3 for a random order, else 3
  MeasuredOrder order = MeasuredOrder::searched;
  std::vector<Graph> graphs;  // in the order (split, name)
};

// The order in which the configurations of a collection were measured, from its name: random for
// layout:X:random, else searched (a genetic search, an enumeration of tile sizes, unknown).
MeasuredOrder measured_order(const Collection& collection);

// Checks the run times of all graphs of a converted collection, several graphs at a time. The
// checks use the order of the shards, which is that of the NPZ files. The significance level covers
// all checks of the collection together. Reads only run times. Throws DataError or IoError.
CheckedCollection check_collection(const std::filesystem::path& shard_root,
                                   const Collection& collection, std::optional<MeasuredOrder> order,
                                   ThreadPool& pool);

// The setting, for a command line, that excludes the suspect graphs of a split from training or
// evaluation: 'data.exclude.train=["a", "b"]'. Empty for the test split, and for a split without
// suspect graphs.
std::string exclusion_of(const CheckedCollection& checked, std::string_view split);

}  // namespace tpudist
