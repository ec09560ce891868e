#include "results/scores/out_of_fold.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "core/means.hpp"
#include "results/scores/score_table.hpp"

namespace tpudist {

std::vector<OutOfFoldScore> out_of_fold_scores(const PredictionsFile& predictions) {
  const PredictionsHeader& header = predictions.header();
  const ScoreColumn& metric = primary_metric(header.collection);
  std::vector<OutOfFoldScore> sums;  // [M], `score` is the sum
  for (const PredictedMember& member : header.members) sums.push_back({member.number, member.fold});
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& graph = header.graphs[g];
    if (graph.fold < 0) continue;
    const PredictionRows scored = predictions.read(static_cast<int>(g));
    const std::vector<double> targets = scored.targets();
    for (std::size_t m = 0; m < sums.size(); ++m) {
      const PredictedMember& member = header.members[m];
      if (member.failed || member.fold != graph.fold || !graph.held_out[m]) continue;
      // A member with a score that is not finite has no mean over its other graphs either.
      if (!all_finite(scored.scores[m])) sums[m].score = kNone;
      if (std::isnan(sums[m].score)) continue;
      const double value = metric.of(scored.scores[m], targets);
      if (std::isnan(value)) continue;
      sums[m].score += value;
      ++sums[m].graphs;
    }
  }
  std::vector<OutOfFoldScore> scores;
  for (OutOfFoldScore& sum : sums) {
    if (sum.fold < 0) continue;
    sum.score = sum.graphs > 0 ? sum.score / sum.graphs : kNone;
    scores.push_back(sum);
  }
  return scores;
}

nlohmann::json out_of_fold_json(const PredictionsHeader& header,
                                const std::vector<OutOfFoldScore>& scores) {
  nlohmann::json members = nlohmann::json::array();
  for (const OutOfFoldScore& score : scores) {
    members.push_back({{"number", score.number},
                       {"fold", score.fold},
                       {"graphs", score.graphs},
                       {"score", finite_or_null(score.score)}});
  }
  return {{"metric", primary_metric(header.collection).name},
          {"most_rows", header.most_rows},
          {"members", members}};
}

}  // namespace tpudist
