#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json_fault.hpp"
#include "core/json_number.hpp"
#include "core/means.hpp"
#include "data/schema/model_family.hpp"
#include "results/member_scores.hpp"
#include "train/scores/score_table.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

// 0 where it is missing: an earlier version kept none.
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
    graph.out_of_fold.assign(members.size(), graph.split != "train");
    graph.combined = number_or_nan(graphs.at(g).at(scores.metric));
    graph.combined_members = used;
    scores.graphs.push_back(std::move(graph));
  }
  set_data_hash(scores);
}

MemberScores scores_from(const Json& json, const std::string& collection, int first_member) {
  MemberScores scores{.collection = collection,
                      .metric = std::string(primary_metric(collection).name),
                      .most_rows = json.value("most_rows", std::int64_t{0}),
                      .combination = read_combination(json.value("combine", "z_score")),
                      .members = {},
                      .graphs = {},
                      .out_of_fold = {},
                      .data_hash = 0,
                      .parameter_hash = hash_from(json, "parameters")};
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

std::optional<double> known(double score) {
  return std::isnan(score) ? std::nullopt : std::optional(score);
}

}  // namespace

MemberScores read_member_scores_json(const std::filesystem::path& path,
                                     const std::string& collection, int first_member) {
  const std::string text = read_text_file(path);
  try {
    return scores_from(Json::parse(text), collection, first_member);
  } catch (const std::exception& error) {
    throw DataError(fmt::format(
        "{}: damaged: {}; `tpudist train --resume` with the run's folder writes it again",
        path.string(), json_fault(error.what())));
  }
}

std::vector<MemberResult> read_member_results(const std::filesystem::path& path,
                                              const std::string& collection, int first_member,
                                              int members) {
  std::vector<MemberResult> results(static_cast<std::size_t>(members));
  for (int i = 0; i < members; ++i) results[static_cast<std::size_t>(i)].number = first_member + i;
  if (!std::filesystem::exists(path)) return results;
  const MemberScores scores = read_member_scores_json(path, collection, first_member);
  const auto result_of = [&](int number) -> MemberResult& {
    const auto at = std::ranges::find(results, number, &MemberResult::number);
    if (at != results.end()) return *at;
    throw DataError(fmt::format("{}: damaged: the run has no member {}", path.string(), number));
  };
  for (std::size_t m = 0; m < scores.members.size(); ++m) {
    std::vector<double> valid;
    for (const GraphResult& graph : scores.graphs) valid.push_back(graph.members[m]);
    MemberResult& result = result_of(scores.members[m].number);
    result.failed = scores.members[m].failed;
    result.valid = known(mean_of_known(valid));
    result.valid_graphs =
        static_cast<int>(std::ranges::count_if(valid, [](double s) { return !std::isnan(s); }));
  }
  for (const OutOfFoldScore& member : scores.out_of_fold) {
    MemberResult& result = result_of(member.number);
    result.out_of_fold = known(member.score);
    result.out_of_fold_graphs = member.graphs;
  }
  return results;
}

}  // namespace tpudist
