#include "results/member_scores.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/hash.hpp"
#include "core/means.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/model_family.hpp"
#include "ensemble/out_of_fold.hpp"
#include "statistics/combination.hpp"

namespace tpudist {
namespace {

bool all_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

void combine_members(GraphResult& graph, const std::string& collection, const PredictionRows& rows,
                     const std::vector<double>& targets) {
  const auto scored = [&](std::size_t m) {
    return !rows.scores[m].empty() && all_finite(rows.scores[m]);
  };
  bool any_out_of_fold = false;
  for (std::size_t m = 0; m < rows.scores.size(); ++m)
    any_out_of_fold = any_out_of_fold || (scored(m) && graph.out_of_fold[m]);
  std::vector<std::vector<double>> chosen;
  for (std::size_t m = 0; m < rows.scores.size(); ++m) {
    if (scored(m) && (graph.out_of_fold[m] || !any_out_of_fold)) chosen.push_back(rows.scores[m]);
  }
  graph.combined_members = static_cast<int>(chosen.size());
  graph.combined =
      chosen.empty() ? kNone : primary_metric(collection, combine(chosen, {}), targets);
}

GraphResult score_graph(const PredictionsHeader& header, const PredictionEntry& entry,
                        const PredictionRows& rows) {
  GraphResult graph{.name = entry.name,
                    .family = model_family(entry.name),
                    .split = entry.split,
                    .nodes = entry.nodes,
                    .configs = entry.configs,
                    .rows = entry.rows,
                    .fold = entry.fold,
                    .data_hash = data_hash(entry, rows),
                    .members = {},
                    .out_of_fold = entry.held_out,
                    .combined = kNone,
                    .combined_members = 0};
  const std::vector<double> targets = rows.targets();
  for (const std::vector<double>& scores : rows.scores) {
    graph.members.push_back(all_finite(scores) ? primary_metric(header.collection, scores, targets)
                                               : kNone);
  }
  combine_members(graph, header.collection, rows, targets);
  return graph;
}

}  // namespace

void set_data_hash(MemberScores& scores) {
  Hasher hasher;
  for (const GraphResult& graph : scores.graphs) {
    if (graph.data_hash == 0) return;
    hasher.update(graph.data_hash);
  }
  scores.data_hash = hasher.digest();
}

bool GraphResult::combined_out_of_fold() const {
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (out_of_fold[m] && !std::isnan(members[m])) return true;
  }
  return false;
}

MemberScores read_member_scores(const PredictionSource& predictions) {
  const PredictionsHeader& header = predictions.header();
  MemberScores scores{.collection = header.collection,
                      .metric = std::string(primary_metric_of(header.collection)),
                      .most_rows = header.most_rows,
                      .members = header.members,
                      .graphs = {},
                      .data_hash = 0,
                      .parameter_hash = 0};
  if (header.runs.size() == 1) scores.parameter_hash = header.runs.front().parameter_hash;
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& entry = header.graphs[g];
    if (entry.split == "test") continue;
    scores.graphs.push_back(score_graph(header, entry, predictions.read(static_cast<int>(g))));
  }
  std::ranges::sort(scores.graphs, {}, [](const GraphResult& graph) {
    const auto split = std::ranges::find(kSplits, graph.split) - std::begin(kSplits);
    return std::tuple(split, graph.name);
  });
  set_data_hash(scores);
  return scores;
}

}  // namespace tpudist
