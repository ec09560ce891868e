#include "statistics/intervals/two_way_table.hpp"

#include <map>

#include "core/means.hpp"

namespace tpudist {
namespace {

double squared(double value) {
  return value * value;
}

TwoWayTable table_of(const RunScoreTable& fold) {
  const std::vector<double> of_graphs = graph_means(fold), of_runs = run_means(fold);
  TwoWayTable table{static_cast<double>(of_graphs.size()), static_cast<double>(of_runs.size())};
  table.mean = mean(of_graphs);
  for (const double mean : of_graphs)
    table.graph_squares += table.runs * squared(mean - table.mean);
  for (const double mean : of_runs) table.run_squares += table.graphs * squared(mean - table.mean);
  for (std::size_t g = 0; g < of_graphs.size(); ++g) {
    for (std::size_t r = 0; r < of_runs.size(); ++r)
      table.interaction_squares +=
          squared(fold.scores[g][r] - of_graphs[g] - of_runs[r] + table.mean);
  }
  return table;
}

}  // namespace

std::vector<TwoWayTable> tables_of(const RunScoreTable& scores) {
  scores.check();
  std::map<int, RunScoreTable> folds;
  for (int g = 0; g < scores.graph_count(); ++g)
    folds[scores.fold_of(g)].scores.push_back(scores.scores[static_cast<std::size_t>(g)]);
  std::vector<TwoWayTable> tables;
  for (const auto& [number, fold] : folds) tables.push_back(table_of(fold));
  return tables;
}

}  // namespace tpudist
