#pragma once

#include <vector>

#include "statistics/run_scores.hpp"

namespace tpudist {

// Sums of squares of the graphs of one fold by the runs that scored them, in score^2. The squares
// add up to those of all scores around their mean.
struct TwoWayTable {
  double graphs = 0, runs = 0;
  double mean = 0;
  double graph_squares = 0;        // R x sum over graphs of (graph's mean - mean)^2
  double run_squares = 0;          // G x sum over runs of (run's mean - mean)^2
  double interaction_squares = 0;  // of what graph and run do not explain
};

// A table for each fold, by rising number. Throws as RunScores::check.
std::vector<TwoWayTable> tables_of(const RunScores& scores);

}  // namespace tpudist
