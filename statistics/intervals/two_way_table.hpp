#pragma once

#include <vector>

#include "statistics/intervals/run_score_table.hpp"

namespace tpudist {

// Sums of squares, in score^2, of the two-way table of one fold: graphs by the runs that scored
// them. The three sums add up to the squares of all scores around their mean.
struct TwoWayTable {
  double graphs = 0, runs = 0;
  double mean = 0;
  double graph_squares = 0;        // R x sum over graphs of (graph's mean - mean)^2
  double run_squares = 0;          // G x sum over runs of (run's mean - mean)^2
  double interaction_squares = 0;  // the rest
};

// A table for each fold, in ascending order. Throws as RunScoreTable::check.
std::vector<TwoWayTable> tables_of(const RunScoreTable& scores);

}  // namespace tpudist
