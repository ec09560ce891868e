#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "statistics/intervals/interval.hpp"

namespace tpudist {

// A table of the scores of one system: a row for each graph of one collection, a column for each of
// its R complete runs. A score is the metric of one graph: Kendall tau, or the tile score.
struct RunScoreTable {
  std::vector<std::string> graphs;          // [G] names, for messages
  std::vector<std::string> families;        // [G] of model_family; intervals count kin as one
  std::vector<int> folds;                   // [G] one training scored all graphs of a fold;
                                            // empty: one fold
  std::vector<std::vector<double>> scores;  // [G][R]
  double lowest = -1;  // lowest possible score: of Kendall tau; a tile score has none. Highest: 1.

  int graph_count() const { return static_cast<int>(scores.size()); }
  int run_count() const { return scores.empty() ? 0 : static_cast<int>(scores.front().size()); }
  int family_count() const;
  Reach reach() const { return {lowest, 1}; }
  int fold_of(int graph) const {
    return folds.empty() ? 0 : folds[static_cast<std::size_t>(graph)];
  }

  // Throws DataError, which names graph and run, if there is no graph or no run, run counts or
  // lengths of lists differ, or a score is not finite.
  void check() const;
};

// Only the graphs with these names, in their order.
RunScoreTable on_graphs(const RunScoreTable& scores, const std::set<std::string>& names);
// The names that all of `scores` have; empty for an empty span.
std::set<std::string> common_graphs(std::span<const RunScoreTable* const> scores);

// Mean over runs. [G]
std::vector<double> graph_means(const RunScoreTable& scores);
// Mean over graphs. [R]
std::vector<double> run_means(const RunScoreTable& scores);
double mean_score(const RunScoreTable& scores);

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
