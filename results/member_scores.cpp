#include "results/member_scores.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/hash.hpp"
#include "core/means.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/model_family.hpp"
#include "train/scores/score_table.hpp"

namespace tpudist {
namespace {

void combine_members(GraphResult& graph, const PredictionsHeader& header,
                     const PredictionEntry& entry, const PredictionRows& rows,
                     const Combination& combination, const std::vector<double>& targets) {
  std::vector<double> weights = held_out_weights(entry, rows);
  if (std::ranges::find(weights, 1.0) == weights.end()) {
    for (std::size_t m = 0; m < weights.size(); ++m)
      weights[m] = all_finite(rows.scores[m]) ? 1 : 0;
  }
  const std::vector<double> combined = combine_scored(rows.scores, combination, weights);
  graph.combined =
      combined.empty() ? kNone : primary_metric(header.collection).of(combined, targets);
  graph.combined_members =
      combined.empty() ? 0 : static_cast<int>(std::ranges::count(weights, 1.0));
}

GraphResult score_graph(const PredictionsHeader& header, const PredictionEntry& entry,
                        const PredictionRows& rows, const Combination& combination) {
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
    graph.members.push_back(
        all_finite(scores) ? primary_metric(header.collection).of(scores, targets) : kNone);
  }
  combine_members(graph, header, entry, rows, combination, targets);
  return graph;
}

}  // namespace

std::vector<double> held_out_weights(const PredictionEntry& graph, const PredictionRows& rows) {
  std::vector<double> weights;
  for (std::size_t m = 0; m < rows.scores.size(); ++m)
    weights.push_back(graph.held_out[m] && all_finite(rows.scores[m]) ? 1 : 0);
  return weights;
}

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
                      .metric = std::string(primary_metric(header.collection).name),
                      .most_rows = header.most_rows,
                      .combination = header.combination.value_or(Combination{}),
                      .members = header.members,
                      .graphs = {},
                      .out_of_fold = {},
                      .data_hash = 0,
                      .parameter_hash = 0};
  if (header.runs.size() == 1) scores.parameter_hash = header.runs.front().parameter_hash;
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& entry = header.graphs[g];
    if (entry.split == "test") continue;
    scores.graphs.push_back(
        score_graph(header, entry, predictions.read(static_cast<int>(g)), scores.combination));
  }
  std::ranges::sort(scores.graphs, {}, [](const GraphResult& graph) {
    const auto split = std::ranges::find(kSplits, graph.split) - std::begin(kSplits);
    return std::tuple(split, graph.name);
  });
  set_data_hash(scores);
  return scores;
}

}  // namespace tpudist
