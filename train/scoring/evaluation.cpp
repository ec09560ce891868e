#include "train/scoring/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/means.hpp"
#include "core/numbers.hpp"
#include "train/scoring/prediction_records.hpp"

namespace tpudist {
namespace {

std::vector<double> targets_of(const Dataset& dataset, const ScoresByMember& prediction) {
  std::vector<double> targets;
  for (std::int64_t row : prediction.rows) targets.push_back(dataset.target(prediction.graph, row));
  return targets;
}

// The weights of the combined members on the graph: 0 for a member whose scores are not all finite.
std::vector<double> weights_on(const ScoresByMember& prediction, const Evaluation& evaluation) {
  std::vector<double> weights(evaluation.used.begin(), evaluation.used.end());
  for (std::size_t m = 0; m < weights.size(); ++m) {
    const std::vector<double>& scores = prediction.scores[m];
    if (scores.empty() || !all_finite(scores)) weights[m] = 0;
  }
  return weights;
}

constexpr std::string_view kNotFinite = "its loss was not finite";

// Whether members with scores are not combined.
bool has_rejected(const Evaluation& evaluation) {
  for (std::size_t m = 0; m < evaluation.used.size(); ++m) {
    if (!evaluation.used[m] && evaluation.left_out[m] != kNotFinite) return true;
  }
  return false;
}

std::string slates_text(const ScoringSlates& slates) {
  if (!slates.wanted()) return "";
  return fmt::format("  in slates of at most {} configurations, mean of {}", slates.configs,
                     counted(slates.permutations, "permutation"));
}

}  // namespace

std::vector<double> Evaluation::member_means() const {
  std::vector<double> means;
  for (const auto& member : members)
    means.push_back(primary_score(mean_scores_of(member, is_tile).mean, is_tile));
  return means;
}

double Evaluation::ensemble_mean() const {
  return primary_score(mean_scores_of(ensemble, is_tile).mean, is_tile);
}

double Evaluation::mean_of_members() const {
  if (judged_mean) return *judged_mean;
  std::vector<double> graphs;
  for (std::size_t g = 0; g < ensemble.size(); ++g) {
    std::vector<double> scores;
    for (const auto& member : members) scores.push_back(primary_score(member[g], is_tile));
    graphs.push_back(mean_of_known(scores));
  }
  return mean_of_known(graphs);
}

Evaluation start_evaluation(const ScoringSession& session, const std::vector<bool>& use,
                            std::int64_t most_rows, const Combination& combination) {
  Evaluation evaluation;
  evaluation.combination = combination;
  evaluation.split = session.data().options().split;
  evaluation.is_tile = session.data().options().collection.is_tile();
  evaluation.held_out_only = session.is_limited();
  evaluation.names = session.names();
  evaluation.slates = session.slates();
  evaluation.most_rows = most_rows;
  evaluation.used = use;
  evaluation.left_out.assign(use.size(), std::string(kNotFinite));
  evaluation.finite.assign(use.size(), true);
  evaluation.members.resize(use.size());
  return evaluation;
}

void add_members(Evaluation& evaluation, const std::vector<ScoresByMember>& predictions,
                 const Dataset& dataset, ThreadPool& pool) {
  const std::size_t before = evaluation.ensemble.size(), members = evaluation.used.size();
  evaluation.ensemble.resize(before + predictions.size());
  for (auto& member : evaluation.members) member.resize(evaluation.ensemble.size());
  evaluation.data_hashes.resize(evaluation.ensemble.size());
  pool.parallel_for(
      static_cast<std::int64_t>(predictions.size() * (members + 1)), [&](std::int64_t i) {
        const std::size_t g = static_cast<std::size_t>(i) / (members + 1),
                          m = static_cast<std::size_t>(i) % (members + 1);
        const ScoresByMember& prediction = predictions[g];
        const std::string& name = dataset.graph(prediction.graph).name;
        if (m == members) {
          evaluation.ensemble[before + g].name = name;
          evaluation.data_hashes[before + g] =
              data_hash(graph_record(dataset.entry(prediction.graph), evaluation.most_rows, -1, {}),
                        scores_record(dataset, prediction, 0));
          return;
        }
        // The defaults of GraphMetrics are "undefined", for members that did not score the graph.
        GraphMetrics& slot = evaluation.members[m][before + g];
        const std::vector<double>& scores = prediction.scores[m];
        if (evaluation.used[m] && !scores.empty() && all_finite(scores))
          slot = score_graph(scores, targets_of(dataset, prediction), evaluation.is_tile);
        slot.name = name;
      });
  for (std::size_t m = 0; m < members; ++m) {
    const auto is_finite = [&](const ScoresByMember& graph) { return all_finite(graph.scores[m]); };
    if (evaluation.used[m] && !std::ranges::all_of(predictions, is_finite))
      evaluation.finite[m] = false;
    if (evaluation.finite[m]) continue;
    // A mean over the member's other graphs would be one over easier graphs.
    for (GraphMetrics& graph : evaluation.members[m]) graph = {.name = graph.name};
  }
}

void add_graphs(Evaluation& evaluation, const std::vector<ScoresByMember>& predictions,
                const Dataset& dataset, ThreadPool& pool) {
  const std::size_t before = evaluation.ensemble.size();
  add_members(evaluation, predictions, dataset, pool);
  pool.parallel_for(std::ssize(predictions), [&](std::int64_t i) {
    const ScoresByMember& prediction = predictions[i];
    const std::vector<double> weights = weights_on(prediction, evaluation);
    const bool combined = std::ranges::any_of(weights, [](double weight) { return weight > 0; });
    // If no member is used at all, the graph gets equal scores of 0.
    if (!combined && std::ranges::find(evaluation.used, true) != evaluation.used.end()) return;
    GraphMetrics& slot = evaluation.ensemble[before + static_cast<std::size_t>(i)];
    const std::string name = slot.name;
    slot = score_graph(combined_scores(prediction, weights, evaluation.combination),
                       targets_of(dataset, prediction), evaluation.is_tile);
    slot.name = name;
  });
}

Evaluation judged(Evaluation evaluation, const Judgement& judgement) {
  evaluation.used = judgement.used;
  for (const Rejection& rejection : judgement.rejected)
    evaluation.left_out[rejection.member] = rejection.reason;
  for (std::size_t m = 0; m < evaluation.used.size(); ++m) {
    if (evaluation.used[m]) continue;
    for (GraphMetrics& graph : evaluation.members[m]) graph = {.name = graph.name};
  }
  if (judgement.tables.empty()) return evaluation;
  const TableJudgement& table = judgement.tables.front();  // of one split, in the same order
  evaluation.judged_mean = table.mean_of_members;
  for (std::size_t g = 0; g < table.graphs.size(); ++g) {
    evaluation.ensemble[g] = table.graphs[g].metrics;
    evaluation.ensemble[g].name = table.graphs[g].name;
  }
  return evaluation;
}

void sort_graphs(Evaluation& evaluation) {
  std::vector<std::size_t> order(evaluation.ensemble.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t g) { return evaluation.ensemble[g].name; });
  const auto sorted = [&](const auto& graphs) {
    std::remove_cvref_t<decltype(graphs)> result;
    for (const std::size_t g : order) result.push_back(graphs[g]);
    return result;
  };
  evaluation.ensemble = sorted(evaluation.ensemble);
  for (std::vector<GraphMetrics>& member : evaluation.members) member = sorted(member);
  if (!evaluation.data_hashes.empty()) evaluation.data_hashes = sorted(evaluation.data_hashes);
}

Evaluation evaluate_members(const ScoringSession& session, std::span<const float> flat,
                            const std::vector<bool>& use, std::int64_t most_rows,
                            JobContext& context, const std::function<bool()>& stops) {
  Evaluation evaluation = start_evaluation(session, use, most_rows);
  context.progress.start("evaluate", session.scores(most_rows), "scores");
  const auto take = [&](const std::vector<ScoresByMember>& scored) {
    add_graphs(evaluation, scored, session.data(), context.pool);
  };
  session.score({flat}, most_rows, take, stops);
  context.progress.finish();
  return evaluation;
}

std::string evaluation_table(const Evaluation& evaluation) {
  const auto columns = score_columns(evaluation.is_tile);
  std::string text = fmt::format(
      "{} of the {} of {} together on the {} split{}\n\n", columns[0].name,
      name_of(evaluation.combination.rule),
      counted(std::ranges::count(evaluation.used, true), "member"), evaluation.split,
      evaluation.most_rows > 0 ? fmt::format(", at most {} rows a graph", evaluation.most_rows)
                               : "");
  if (evaluation.held_out_only) {
    text.insert(text.size() - 1,
                "each graph by the members that never trained on it (ensemble.fold_over)\n");
  }
  text += score_table_text(evaluation.ensemble, evaluation.is_tile);
  text += fmt::format("\nmembers ({}, mean over graphs)\n", columns[0].name);
  const std::vector<double> means = evaluation.member_means();
  for (std::size_t m = 0; m < means.size(); ++m) {
    const std::string name = to_text(evaluation.names[m]);
    text += evaluation.used[m]
                ? fmt::format("  {}  {:.4f}{}\n", name, means[m], slates_text(evaluation.slates[m]))
                : fmt::format("  {}  left out: {}\n", name, evaluation.left_out[m]);
  }
  text += fmt::format(
      "  members together  {:.4f}\n  mean of members   {:.4f}{}\n", evaluation.ensemble_mean(),
      evaluation.mean_of_members(),
      evaluation.judged_mean && has_rejected(evaluation) ? "  (rejected ones, too)" : "");
  return text;
}

nlohmann::json evaluation_json(const Evaluation& evaluation) {
  nlohmann::json members = nlohmann::json::array();
  for (std::size_t m = 0; m < evaluation.members.size(); ++m) {
    nlohmann::json member = score_table_json(evaluation.members[m], evaluation.is_tile);
    member["number"] = evaluation.names[m].number;
    if (!evaluation.names[m].run.empty()) member["run"] = evaluation.names[m].run;
    member["used"] = static_cast<bool>(evaluation.used[m]);
    if (const ScoringSlates& slates = evaluation.slates[m]; slates.wanted()) {
      member["slate"] = {{"configs", slates.configs},
                         {"permutations", slates.permutations},
                         {"seed", slates.seed}};
    }
    members.push_back(std::move(member));
  }
  nlohmann::json ensemble = score_table_json(evaluation.ensemble, evaluation.is_tile);
  for (std::size_t g = 0; g < evaluation.data_hashes.size(); ++g)
    ensemble["graphs"][g]["data_hash"] = to_hex(evaluation.data_hashes[g]);
  // 0 stands for all rows.
  return {{"split", evaluation.split},
          {"most_rows", evaluation.most_rows},
          {"combine", to_text(evaluation.combination)},
          {"held_out_only", evaluation.held_out_only},
          {"ensemble", std::move(ensemble)},
          {"mean_of_members", finite_or_null(evaluation.mean_of_members())},
          {"members", members}};
}

}  // namespace tpudist
