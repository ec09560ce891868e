#include "report/training_scores.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace tpudist {

RunScores mean_of_members(const ScoreMatrix& matrix) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> trainings;
  for (std::size_t r = 0; r < matrix.rows.size(); ++r)
    trainings[{matrix.rows[r].init_seed, matrix.rows[r].order_seed}].push_back(r);
  RunScores scores;
  for (std::size_t g = 0; g < matrix.graphs.size(); ++g) {
    const MatrixGraph& graph = matrix.graphs[g];
    scores.graphs.push_back(graph.name);
    scores.families.push_back(graph.family);
    if (matrix.kind == MatrixRows::out_of_fold) scores.folds.push_back(graph.fold);
    auto& own = scores.scores.emplace_back();
    for (const auto& [seeds, rows] : trainings) {
      double sum = 0;
      for (const std::size_t r : rows) sum += matrix.scores[r][g];
      own.push_back(sum / static_cast<double>(rows.size()));
    }
  }
  return scores;
}

RunScores members_together(const VariantRankings& rankings) {
  RunScores scores;
  for (const RankedGraph& graph : rankings.graphs) {
    const bool known =
        !graph.trainings.empty() &&
        std::ranges::all_of(graph.trainings, [](double s) { return std::isfinite(s); });
    if (graph.split != "valid" || graph.fold >= 0 || !known) continue;
    scores.graphs.push_back(graph.name);
    scores.families.push_back(graph.family);
    scores.scores.push_back(graph.trainings);
  }
  return scores;
}

}  // namespace tpudist
