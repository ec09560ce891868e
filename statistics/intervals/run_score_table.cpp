#include "statistics/intervals/run_score_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "core/means.hpp"

namespace tpudist {

int RunScoreTable::family_count() const {
  return static_cast<int>(std::set(families.begin(), families.end()).size());
}

void RunScoreTable::check() const {
  if (scores.empty()) throw DataError("there is no graph with scores");
  if (graphs.size() != scores.size() || families.size() != scores.size() ||
      (!folds.empty() && folds.size() != scores.size()))
    throw DataError(fmt::format("{} graphs have {} names, {} families and {} folds", scores.size(),
                                graphs.size(), families.size(), folds.size()));
  for (std::size_t g = 0; g < scores.size(); ++g) {
    if (scores[g].empty() || scores[g].size() != scores.front().size())
      throw DataError(
          fmt::format("graph {} has scores of {} runs, graph {} of {}; compare complete runs",
                      graphs[g], scores[g].size(), graphs.front(), scores.front().size()));
    for (std::size_t r = 0; r < scores[g].size(); ++r) {
      if (!std::isfinite(scores[g][r]))
        throw DataError(
            fmt::format("the score of run {} on graph {} is {}; leave that run or graph out", r,
                        graphs[g], scores[g][r]));
    }
  }
}

RunScoreTable on_graphs(const RunScoreTable& scores, const std::set<std::string>& names) {
  RunScoreTable kept;
  kept.lowest = scores.lowest;
  for (std::size_t g = 0; g < scores.graphs.size(); ++g) {
    if (!names.contains(scores.graphs[g])) continue;
    kept.graphs.push_back(scores.graphs[g]);
    kept.families.push_back(scores.families[g]);
    if (!scores.folds.empty()) kept.folds.push_back(scores.folds[g]);
    kept.scores.push_back(scores.scores[g]);
  }
  return kept;
}

std::set<std::string> common_graphs(std::span<const RunScoreTable* const> scores) {
  std::set<std::string> common;
  if (!scores.empty()) common.insert(scores[0]->graphs.begin(), scores[0]->graphs.end());
  for (const RunScoreTable* own : scores) {
    std::erase_if(common, [&](const std::string& name) {
      return std::ranges::find(own->graphs, name) == own->graphs.end();
    });
  }
  return common;
}

std::vector<double> graph_means(const RunScoreTable& scores) {
  std::vector<double> means;
  for (const std::vector<double>& own : scores.scores) means.push_back(mean(own));
  return means;
}

std::vector<double> run_means(const RunScoreTable& scores) {
  std::vector<double> means(static_cast<std::size_t>(scores.run_count()), 0.0);
  for (const std::vector<double>& own : scores.scores) {
    for (std::size_t r = 0; r < own.size(); ++r)
      means[r] += own[r] / static_cast<double>(scores.scores.size());
  }
  return means;
}

double mean_score(const RunScoreTable& scores) {
  return mean(graph_means(scores));
}

namespace {

TwoWayTable table_of(const RunScoreTable& fold) {
  const std::vector<double> of_graphs = graph_means(fold), of_runs = run_means(fold);
  const auto squared = [](double value) { return value * value; };
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
