#include "results/system_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace tpudist {
namespace {

// Runs of a system are draws of the same training.
void require_one_variant(std::span<const RunRecord> runs) {
  const RunRecord* first = nullptr;
  std::map<std::pair<std::uint64_t, int>, const RunRecord*>
      known;  // by parameters and first member
  for (const RunRecord& run : runs) {
    if (!run.hashes) continue;
    if (!first) first = &run;
    if (run.hashes->variant_hash != first->hashes->variant_hash)
      throw ConfigError(
          fmt::format("{} and {} are runs of different settings; name one side's runs before "
                      "--with and the other's behind it",
                      first->path.string(), run.path.string()));
    const auto [same, fresh] =
        known.try_emplace({run.hashes->parameter_hash, run.first_member}, &run);
    if (!fresh)
      throw ConfigError(
          fmt::format("{} and {} are one and the same training (equal parameters); "
                      "give runs of different seeds",
                      same->second->path.string(), run.path.string()));
  }
}

MatrixRows rows_of(JudgedGraphs judged, RunUnit unit) {
  if (judged == JudgedGraphs::out_of_fold) return MatrixRows::out_of_fold;
  return unit == RunUnit::members ? MatrixRows::members : MatrixRows::runs;
}

SystemScores scores_of(const ScoreMatrix& matrix, JudgedGraphs judged) {
  SystemScores result;
  result.collection = matrix.collection;
  result.metric = matrix.metric;
  result.judged = judged;
  result.unit = matrix.kind;
  result.left_out = matrix.left_out;
  for (const MatrixRow& row : matrix.rows) result.labels.push_back(row.label);
  result.scores = run_scores(matrix);
  return result;
}

// Keeps the graphs that the other has, too.
void keep_common(SystemScores& system, const SystemScores& other) {
  RunScores& own = system.scores;
  for (std::size_t g = own.graphs.size(); g-- > 0;) {
    if (std::ranges::find(other.scores.graphs, own.graphs[g]) != other.scores.graphs.end())
      continue;
    system.left_out.push_back(own.graphs[g] + ": the other side has no score of it");
    const auto at = static_cast<std::ptrdiff_t>(g);
    own.graphs.erase(own.graphs.begin() + at);
    own.families.erase(own.families.begin() + at);
    if (!own.folds.empty()) own.folds.erase(own.folds.begin() + at);
    own.scores.erase(own.scores.begin() + at);
  }
}

}  // namespace

RunScores run_scores(const ScoreMatrix& matrix) {
  RunScores result;
  for (std::size_t g = 0; g < matrix.graphs.size(); ++g) {
    const MatrixGraph& graph = matrix.graphs[g];
    result.graphs.push_back(graph.name);
    result.families.push_back(graph.family);
    if (matrix.kind == MatrixRows::out_of_fold) result.folds.push_back(graph.fold);
    auto& own = result.scores.emplace_back();
    for (const auto& row : matrix.scores) own.push_back(row[g]);
  }
  return result;
}

SystemScores system_scores(std::span<const RunRecord> runs, JudgedGraphs judged, RunUnit unit) {
  require_one_variant(runs);
  SystemScores result = scores_of(score_matrix(runs, rows_of(judged, unit)), judged);
  if (unit != RunUnit::automatic || judged != JudgedGraphs::valid || result.labels.size() > 1)
    return result;
  SystemScores members = scores_of(score_matrix(runs, MatrixRows::members), judged);
  return members.labels.size() > 1 ? members : result;
}

SystemPair system_pair(std::span<const RunRecord> a, std::span<const RunRecord> b,
                       JudgedGraphs judged, RunUnit unit) {
  std::vector<RunRecord> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  for (const RunRecord& run : a) {
    if (std::ranges::find(b, run.path, &RunRecord::path) != b.end())
      throw ConfigError(fmt::format("{} stands on both sides; name it on one", run.path.string()));
  }
  score_matrix(all, MatrixRows::runs);  // refuses other data on one of the sides
  score_matrix(all, MatrixRows::out_of_fold);
  SystemPair pair{system_scores(a, judged, unit), system_scores(b, judged, unit)};
  if (pair.a.unit != pair.b.unit) {
    // An ensemble is not compared with single members.
    pair = {system_scores(a, judged, RunUnit::members), system_scores(b, judged, RunUnit::members)};
  }
  keep_common(pair.a, pair.b);
  keep_common(pair.b, pair.a);
  return pair;
}

}  // namespace tpudist
