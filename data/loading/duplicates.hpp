#pragma once

#include <cstdint>
#include <string_view>

#include "core/array.hpp"
#include "schema/graph.hpp"

namespace tpudist {

// How to treat rows of equal configurations: keep them all, or make one row per distinct
// configuration with the minimum, mean, median or first run time.
enum class DuplicatesPolicy { keep, min, mean, median, first };

// The rows that can be drawn from a graph, in the order in which their configurations first occur.
struct MergedRows {
  Array<std::int64_t> configs;  // [rows] number of the first of the equal configurations
  Array<double> targets;        // [rows] in RunTimes::target's unit
};

// One row per distinct configuration (equal config_group); the median of an even number of values
// is the mean of the middle two. Empty for `keep`, where row r is configuration r. `where` names
// the graph in messages. Throws DataError when groups are not numbered by first occurrence.
MergedRows merge_duplicates(const RunTimes& times, DuplicatesPolicy policy, std::string_view where);

}  // namespace tpudist
