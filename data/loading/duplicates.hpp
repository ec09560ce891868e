#pragma once

#include <cstdint>
#include <string_view>

#include "core/array.hpp"
#include "data/schema/graph.hpp"

namespace tpudist {

// How to treat rows of equal configurations: keep them all, or make one row per distinct
// configuration with the minimum, mean, median or first run time.
enum class DuplicatesPolicy { keep, min, mean, median, first };

// Which rows can be drawn from a graph.
struct RowRules {
  DuplicatesPolicy duplicates = DuplicatesPolicy::keep;
  std::int64_t max_configs = 0;  // at most this many, chosen by the graph's name; 0: all
  double least_entropy = 0;      // threshold of kept_by_entropy, applied first; 0: no filter

  // Whether every configuration is a row.
  bool keep_all() const {
    return duplicates == DuplicatesPolicy::keep && max_configs == 0 && least_entropy == 0;
  }
  bool operator==(const RowRules&) const = default;
};

// The rows that can be drawn from a graph, in the order in which their configurations first occur.
struct MergedRows {
  Array<std::int64_t> configs;  // [rows] number of the first of the equal configurations
  Array<double> targets;        // [rows] in RunTimes::target's unit
};

// One row per distinct configuration (equal config_group); the median of an even number of values
// is the mean of the middle two. Empty for `keep`: row r is configuration r. `where` names the
// graph in messages. Throws DataError if groups are not numbered by first occurrence.
MergedRows merge_duplicates(const RunTimes& times, DuplicatesPolicy policy, std::string_view where);

// The rows by all rules, ascending; empty if they keep all. If there are too many rows, the same
// random ones are chosen in every run, by the graph's name alone. Throws as merge_duplicates.
MergedRows choose_rows(const RunTimes& times, const RowRules& rules, std::string_view graph,
                       std::string_view where);

}  // namespace tpudist
