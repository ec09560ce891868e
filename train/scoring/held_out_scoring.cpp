#include "train/scoring/held_out_scoring.hpp"

#include <algorithm>

#include "train/scoring/scoring_blocks.hpp"
#include "train/units/folds.hpp"

namespace tpudist {
namespace {

std::vector<int> flagged(const std::vector<bool>& flags) {
  std::vector<int> members;
  for (std::size_t m = 0; m < flags.size(); ++m) {
    if (flags[m]) members.push_back(static_cast<int>(m));
  }
  return members;
}

// Neighbouring graphs that the same members score.
std::vector<GraphRange> alike(GraphRange graphs, const ScoringMembers& by) {
  std::vector<GraphRange> ranges;
  for (int g = graphs.first; g < graphs.first + graphs.count; ++g) {
    const auto at = static_cast<std::size_t>(g);
    if (ranges.empty() || by[at] != by[at - 1]) ranges.push_back({g, 0});
    ++ranges.back().count;
  }
  return ranges;
}

}  // namespace

ScoringMembers members_without(const EnsembleConfig& ensemble, const FoldTable& folds,
                               const Dataset& valid) {
  ScoringMembers by;
  if (!ensemble.trains_on_valid()) return by;
  for (const int fold : graph_folds(folds, valid)) {
    std::vector<bool>& members = by.emplace_back();
    for (int m = 0; m < ensemble.members; ++m) members.push_back(ensemble.held_out_fold(m) == fold);
  }
  return by;
}

AlignedFloats weights_of(std::span<const float> flat, std::size_t all,
                         std::span<const int> members) {
  const std::size_t length = flat.size() / all;
  AlignedFloats weights;
  for (const int member : members) {
    const auto own = flat.subspan(static_cast<std::size_t>(member) * length, length);
    weights.insert(weights.end(), own.begin(), own.end());
  }
  return weights;
}

std::vector<ScoresByMember> score_graphs(const Network& network, std::span<const float> flat,
                                         int members, const Dataset& dataset, GraphRange graphs,
                                         const ScoringMembers& by, const UnitBuilder& units,
                                         const ScoringOptions& options, JobContext& context) {
  if (by.empty())
    return score_graphs(network, flat, members, dataset, graphs, units, options, context);
  std::vector<ScoresByMember> predictions;
  for (const GraphRange range : alike(graphs, by)) {
    const std::vector<int> own = flagged(by[static_cast<std::size_t>(range.first)]);
    if (own.empty()) {
      for (int g = range.first; g < range.first + range.count; ++g) {
        ScoresByMember& nobody = predictions.emplace_back();
        nobody.graph = g;
        nobody.rows = choose_rows(dataset, g, options.most_rows);
        nobody.scores.resize(static_cast<std::size_t>(members));
      }
      continue;
    }
    const AlignedFloats weights = weights_of(flat, static_cast<std::size_t>(members), own);
    for (ScoresByMember& scored : score_graphs(network, weights, static_cast<int>(own.size()),
                                               dataset, range, units, options, context)) {
      std::vector<std::vector<double>> scores(static_cast<std::size_t>(members));
      for (std::size_t i = 0; i < own.size(); ++i)
        scores[static_cast<std::size_t>(own[i])] = std::move(scored.scores[i]);
      scored.scores = std::move(scores);
      predictions.push_back(std::move(scored));
    }
  }
  return predictions;
}

std::int64_t total_scores(const Dataset& dataset, int members, const ScoringMembers& by,
                          std::int64_t most_rows) {
  if (by.empty()) return total_scores(dataset, members, most_rows);
  std::int64_t scores = 0;
  for (int g = 0; g < dataset.size(); ++g) {
    const std::vector<bool>& own = by[static_cast<std::size_t>(g)];
    scores += std::ranges::count(own, true) * scored_rows(dataset, g, most_rows);
  }
  return scores;
}

}  // namespace tpudist
