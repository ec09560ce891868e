#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// The scores of one system on the graphs of one collection, by every one of its R complete runs. A
// score is what is averaged over graphs: Kendall tau, or the tile score.
struct RunScores {
  std::vector<std::string> graphs;    // [G] names, for messages
  std::vector<std::string> families;  // [G]
  std::vector<int> folds;             // [G] graphs that the same training scored; empty: all are
  std::vector<std::vector<double>> scores;  // [G][R]

  int graph_count() const { return static_cast<int>(scores.size()); }
  int run_count() const { return scores.empty() ? 0 : static_cast<int>(scores.front().size()); }
  int family_count() const;
  int fold_of(int graph) const {
    return folds.empty() ? 0 : folds[static_cast<std::size_t>(graph)];
  }

  // Out of fold every training of a run scores the graphs of one fold only.
  bool is_out_of_fold() const;
  // Throws DataError that names the graph and run: no graph, no run, graphs with other numbers of
  // runs, lists of other lengths, a score that is not finite.
  void check() const;
};

// The graphs of these names, in their order.
RunScores on_graphs(const RunScores& scores, const std::set<std::string>& names);
// The names that all of them have; none of none.
std::set<std::string> common_graphs(std::span<const RunScores* const> scores);

// Mean over runs. [G]
std::vector<double> graph_means(const RunScores& scores);
// Mean over graphs. [R]
std::vector<double> run_means(const RunScores& scores);
double mean_score(const RunScores& scores);

}  // namespace tpudist
