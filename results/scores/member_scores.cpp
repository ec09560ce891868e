#include "results/scores/member_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/means.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/model_family.hpp"
#include "results/scores/score_table.hpp"

namespace tpudist {
namespace {

void combine_members(GraphResult& graph, const PredictionsHeader& header,
                     const PredictionRows& rows, const Combination& combination,
                     const std::vector<double>& targets) {
  std::vector<double> weights = held_out_weights(graph, rows);
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
  GraphResult graph{entry, model_family(entry.name), data_hash(entry, rows), {}};
  const std::vector<double> targets = rows.targets();
  for (const std::vector<double>& scores : rows.scores) {
    graph.members.push_back(
        all_finite(scores) ? primary_metric(header.collection).of(scores, targets) : kNone);
  }
  combine_members(graph, header, rows, combination, targets);
  return graph;
}

void set_data_hash(MemberScores& scores) {
  Hasher hasher;
  for (const GraphResult& graph : scores.graphs) {
    if (graph.data_hash == 0) return;
    hasher.update(graph.data_hash);
  }
  scores.data_hash = hasher.digest();
}

using Json = nlohmann::json;

// 0 if the key is missing: an earlier version wrote none.
std::uint64_t hash_from(const Json& json, const char* key) {
  return from_hex(json.value(key, "")).value_or(0);
}

void read_graphs(const Json& json, int first_member, MemberScores& scores) {
  const Json& members = json.at("members");
  int used = 0;
  for (std::size_t m = 0; m < members.size(); ++m) {
    PredictedMember member;
    member.number = members.at(m).value("number", first_member + static_cast<int>(m));
    member.failed = !members.at(m).at("used").get<bool>();
    used += member.failed ? 0 : 1;
    scores.members.push_back(member);
  }
  const Json& graphs = json.at("ensemble").at("graphs");
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    GraphResult graph;
    graph.name = graphs.at(g).at("name").get<std::string>();
    graph.family = model_family(graph.name);
    graph.split = json.at("split").get<std::string>();
    graph.data_hash = hash_from(graphs.at(g), "data_hash");
    graph.configs = graph.rows = graphs.at(g).at("configs").get<std::int64_t>();
    for (std::size_t m = 0; m < members.size(); ++m) {
      graph.members.push_back(
          scores.members[m].failed
              ? kNone
              : number_or_nan(members.at(m).at("graphs").at(g).at(scores.metric)));
    }
    graph.held_out.assign(members.size(), graph.split != "train");
    graph.combined = number_or_nan(graphs.at(g).at(scores.metric));
    graph.combined_members = used;
    scores.graphs.push_back(std::move(graph));
  }
  set_data_hash(scores);
}

MemberScores scores_from(const Json& json, const std::string& collection, int first_member) {
  MemberScores scores;
  scores.collection = collection;
  scores.metric = primary_metric(collection).name;
  scores.most_rows = json.value("most_rows", std::int64_t{0});
  scores.combination = read_combination(json.value("combine", "z_score"));
  scores.parameter_hash = hash_from(json, "parameters");
  scores.init_hash = hash_from(json, "init_weights");
  if (json.contains("ensemble")) read_graphs(json, first_member, scores);
  if (!json.contains("out_of_fold")) return scores;
  for (const Json& member : json.at("out_of_fold").at("members")) {
    scores.out_of_fold.push_back({.number = member.at("number").get<int>(),
                                  .fold = member.value("fold", -1),
                                  .graphs = member.at("graphs").get<int>(),
                                  .score = number_or_nan(member.at("score"))});
  }
  return scores;
}

// Returns read(content of scores.json).
template <typename Read>
auto read_json(const std::filesystem::path& path, Read read) {
  const std::string text = read_text_file(path);
  try {
    return read(Json::parse(text));
  } catch (const std::exception& error) {
    throw DataError(fmt::format(
        "{}: damaged: {}; `tpudist train --resume` with the run's folder writes it again",
        path.string(), json_fault(error.what())));
  }
}

std::optional<double> known(double score) {
  return std::isnan(score) ? std::nullopt : std::optional(score);
}

}  // namespace

std::string rows_text(std::int64_t most_rows) {
  return most_rows == 0 ? "all rows" : fmt::format("at most {} rows", most_rows);
}

std::vector<double> held_out_weights(const PredictionEntry& graph, const PredictionRows& rows) {
  std::vector<double> weights;
  for (std::size_t m = 0; m < rows.scores.size(); ++m)
    weights.push_back(graph.held_out[m] && all_finite(rows.scores[m]) ? 1 : 0);
  return weights;
}

void each_unseen_graph(const PredictionSource& predictions, const VisitUnseen& visit,
                       const std::vector<bool>& takes_part) {
  const std::vector<PredictionEntry>& graphs = predictions.header().graphs;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    if (graphs[g].split == "test") continue;
    const PredictionRows rows = predictions.read(static_cast<int>(g));
    std::vector<double> weights = held_out_weights(graphs[g], rows);
    for (std::size_t m = 0; m < takes_part.size(); ++m) {
      if (!takes_part[m]) weights[m] = 0;
    }
    visit(graphs[g], rows, weights);
  }
}

MemberScores read_member_scores(const PredictionSource& predictions) {
  const PredictionsHeader& header = predictions.header();
  MemberScores scores;
  scores.collection = header.collection;
  scores.metric = primary_metric(header.collection).name;
  scores.most_rows = header.most_rows;
  scores.combination = header.combination.value_or(Combination{});
  scores.members = header.members;
  if (header.runs.size() == 1) {
    scores.parameter_hash = header.runs.front().parameter_hash;
    scores.init_hash = header.runs.front().init_hash;
  }
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& entry = header.graphs[g];
    if (entry.split == "test") continue;
    const PredictionRows rows = predictions.read(static_cast<int>(g));
    scores.graphs.push_back(score_graph(header, entry, rows, scores.combination));
    for (std::size_t m = 0; m < rows.scores.size(); ++m)
      scores.members[m].failed |= entry.held_out[m] && !all_finite(rows.scores[m]);
  }
  // A member with scores that are not finite on a graph has no mean: it would omit that graph.
  for (std::size_t m = 0; m < scores.members.size(); ++m) {
    for (GraphResult& graph : scores.graphs)
      if (scores.members[m].failed) graph.members[m] = kNone;
  }
  std::ranges::sort(scores.graphs, {}, [](const GraphResult& graph) {
    const auto split = std::ranges::find(kSplits, graph.split) - std::begin(kSplits);
    return std::tuple(split, graph.name);
  });
  set_data_hash(scores);
  return scores;
}

MemberScores read_member_scores_json(const std::filesystem::path& path,
                                     const std::string& collection, int first_member) {
  return read_json(path,
                   [&](const Json& json) { return scores_from(json, collection, first_member); });
}

std::uint64_t read_scored_parameters(const std::filesystem::path& path) {
  return read_json(path, [](const Json& json) { return hash_from(json, "parameters"); });
}

std::vector<RunResult::Member> read_member_results(const std::filesystem::path& path,
                                                   const std::string& collection, int first_member,
                                                   int members) {
  std::vector<RunResult::Member> results(static_cast<std::size_t>(members));
  for (int i = 0; i < members; ++i) results[static_cast<std::size_t>(i)].number = first_member + i;
  if (!std::filesystem::exists(path)) return results;
  const MemberScores scores = read_member_scores_json(path, collection, first_member);
  const auto result_of = [&](int number) -> RunResult::Member& {
    const auto at = std::ranges::find(results, number, &RunResult::Member::number);
    if (at != results.end()) return *at;
    throw DataError(fmt::format("{}: damaged: the run has no member {}", path.string(), number));
  };
  for (std::size_t m = 0; m < scores.members.size(); ++m) {
    std::vector<double> valid;
    for (const GraphResult& graph : scores.graphs) valid.push_back(graph.members[m]);
    RunResult::Member& result = result_of(scores.members[m].number);
    result.failed = scores.members[m].failed;
    result.valid = known(mean_of_known(valid));
    result.valid_graphs =
        static_cast<int>(std::ranges::count_if(valid, [](double s) { return !std::isnan(s); }));
  }
  for (const MemberScores::OutOfFold& member : scores.out_of_fold) {
    RunResult::Member& result = result_of(member.number);
    result.out_of_fold = known(member.score);
    result.out_of_fold_graphs = member.graphs;
  }
  return results;
}

std::vector<MemberScores::OutOfFold> out_of_fold_scores(const PredictionsFile& predictions) {
  const PredictionsHeader& header = predictions.header();
  const ScoreColumn& metric = primary_metric(header.collection);
  std::vector<MemberScores::OutOfFold> sums;  // [M], `score` is the sum
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
  std::vector<MemberScores::OutOfFold> scores;
  for (MemberScores::OutOfFold& sum : sums) {
    if (sum.fold < 0) continue;
    sum.score = sum.graphs > 0 ? sum.score / sum.graphs : kNone;
    scores.push_back(sum);
  }
  return scores;
}

nlohmann::json out_of_fold_json(const PredictionsHeader& header,
                                const std::vector<MemberScores::OutOfFold>& scores) {
  nlohmann::json members = nlohmann::json::array();
  for (const MemberScores::OutOfFold& score : scores) {
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
