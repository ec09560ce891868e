#include "report/score_summary.hpp"

#include <cmath>
#include <limits>

#include "results/system_scores.hpp"
#include "statistics/interval.hpp"
#include "statistics/score_intervals.hpp"

namespace tpudist {
namespace {

ChartInterval ends_of(const Interval& interval) {
  return {interval.low, interval.high};
}

void add_families(ScoreSummary& summary, const RunScores& scores) {
  if (const auto families = family_interval(std::span(&scores, 1))) {
    summary.other_families = ends_of(families->interval);
  } else {
    summary.note += "other families: needs graphs of two families. ";
  }
}

}  // namespace

ScoreSummary summarise(const ScoreMatrix& matrix) {
  const RunScores scores = run_scores(matrix);
  ScoreSummary summary;
  summary.mean = mean_score(scores);
  summary.deviation = std::numeric_limits<double>::quiet_NaN();
  summary.rows = scores.run_count();
  summary.graphs = scores.graph_count();
  summary.families = scores.family_count();
  if (summary.rows > 1) summary.deviation = deviation_interval(run_means(scores)).deviation;
  if (const auto runs = run_interval(scores)) {
    summary.these_graphs = ends_of(*runs);
  } else {
    summary.note += "other runs: needs two, so this is of this model only. ";
  }
  add_families(summary, scores);
  return summary;
}

std::optional<ScoreSummary> summarise(const VariantRankings& rankings) {
  const std::size_t members = rankings.without.size();
  if (members < 2 || rankings.sized_graphs == 0) return std::nullopt;
  RunScores scores;
  for (const RankedGraph& graph : rankings.graphs) {
    if (!graph.sized) continue;
    scores.graphs.push_back(graph.name);
    scores.families.push_back(graph.family);
    scores.scores.push_back({graph.score});
  }
  ScoreSummary summary;
  summary.mean = mean_score(scores);
  summary.deviation = std::numeric_limits<double>::quiet_NaN();
  summary.rows = 1;
  summary.graphs = scores.graph_count();
  summary.families = scores.family_count();
  summary.these_graphs = ends_of(jackknife_interval(summary.mean, rankings.without));
  add_families(summary, scores);
  return summary;
}

std::vector<GraphSummary> summarise_graphs(const ScoreMatrix& matrix) {
  std::vector<GraphSummary> list;
  for (const std::vector<double>& values : run_scores(matrix).scores) {
    double sum = 0;
    for (const double value : values) sum += value;
    GraphSummary summary{sum / static_cast<double>(values.size()), std::nullopt};
    if (values.size() > 1) summary.interval = ends_of(mean_interval(values));
    list.push_back(summary);
  }
  return list;
}

}  // namespace tpudist
