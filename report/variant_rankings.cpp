#include "report/variant_rankings.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <tuple>

#include "data/schema/model_family.hpp"
#include "ensemble/joined_predictions.hpp"
#include "report/ensemble_sizes.hpp"
#include "statistics/combination.hpp"
#include "statistics/metrics.hpp"
#include "train/scores/score_table.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;
constexpr std::size_t kMostSampledRows = 400;

// [n] ranks 0 .. n - 1; of equal values the first comes first.
std::vector<std::size_t> ranks_of(const Values& values) {
  std::vector<std::size_t> order(values.size()), ranks(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  for (std::size_t place = 0; place < order.size(); ++place) ranks[order[place]] = place;
  return ranks;
}

void sample_ranks(RankedGraph& graph, const Values& combined, const Values& targets) {
  const std::vector<std::size_t> measured = ranks_of(targets), predicted = ranks_of(combined);
  const std::size_t rows = targets.size(), points = std::min(rows, kMostSampledRows);
  std::vector<std::size_t> row_of(rows);
  for (std::size_t row = 0; row < rows; ++row) row_of[measured[row]] = row;
  const auto share = [&](std::size_t rank) {
    return (static_cast<double>(rank) + 0.5) / static_cast<double>(rows);
  };
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t rank = i * rows / points;
    graph.measured.push_back(share(rank));
    graph.predicted.push_back(share(predicted[row_of[rank]]));
  }
}

RankedGraph rank_graph(const std::string& collection, const PredictionEntry& entry,
                       const Values& combined, const PredictionRows& rows, bool ceilings) {
  RankedGraph graph{.name = entry.name,
                    .family = model_family(entry.name),
                    .split = entry.split,
                    .rows = entry.rows,
                    .members = 0,
                    .score = 0,
                    .sized = false,
                    .limits = {},
                    .slowdown = {},
                    .measured = {},
                    .predicted = {}};
  const Values targets = rows.targets();
  graph.score = primary_metric(collection).of(combined, targets);
  for (const std::int64_t count : kSlowdownCounts)
    graph.slowdown.push_back(slowdown_at(combined, targets, count));
  if (ceilings) graph.limits = score_limits(collection, combined, rows);
  sample_ranks(graph, combined, targets);
  return graph;
}

}  // namespace

VariantRankings rank_variant(std::span<const RunRecord> runs, bool ceilings) {
  VariantRankings rankings;
  std::vector<std::shared_ptr<const PredictionsFile>> files;
  for (const RunRecord& run : runs) {
    if (run.predictions) {
      files.push_back(run.predictions);
    } else {
      rankings.missing.push_back(run.label);
    }
  }
  if (files.empty()) return rankings;
  const JoinedPredictions joined(std::move(files));
  const PredictionsHeader& header = joined.header();
  const Combination combination = header.combination.value_or(Combination{});
  EnsembleSizes sizes(header.collection);
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& entry = header.graphs[g];
    if (entry.split == "test") continue;
    const PredictionRows rows = joined.read(static_cast<int>(g));
    const Values weights = held_out_weights(entry, rows);
    const Values combined = combine_scored(rows.scores, combination, weights);
    if (combined.empty()) continue;
    RankedGraph ranked = rank_graph(header.collection, entry, combined, rows, ceilings);
    std::vector<Values> forms;
    for (std::size_t m = 0; m < weights.size(); ++m) {
      if (weights[m] > 0) forms.push_back(averaged_form(rows.scores[m], combination));
    }
    ranked.members = static_cast<int>(forms.size());
    if (entry.fold < 0) ranked.sized = sizes.add_graph(forms, rows.targets());
    rankings.graphs.push_back(std::move(ranked));
  }
  std::ranges::sort(rankings.graphs, {}, [](const RankedGraph& graph) {
    return std::tuple(graph.split != "valid", graph.name);
  });
  rankings.sizes = sizes.result();
  rankings.without = sizes.without();
  rankings.sized_members = sizes.members();
  rankings.sized_graphs = sizes.graphs();
  return rankings;
}

}  // namespace tpudist
