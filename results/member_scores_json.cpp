#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json_fault.hpp"
#include "data/schema/model_family.hpp"
#include "results/member_scores.hpp"
#include "train/scores/score_table.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

double score_from(const Json& graph, const std::string& metric) {
  const Json& value = graph.at(metric);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

// 0 where it is missing: an earlier version kept none.
std::uint64_t hash_from(const Json& json, const char* key) {
  return from_hex(json.value(key, "")).value_or(0);
}

MemberScores scores_from(const Json& json, const std::string& collection, int first_member) {
  MemberScores scores{.collection = collection,
                      .metric = std::string(primary_metric(collection).name),
                      .most_rows = json.value("most_rows", std::int64_t{0}),
                      .combination = read_combination(json.value("combine", "z_score")),
                      .members = {},
                      .graphs = {},
                      .data_hash = 0,
                      .parameter_hash = hash_from(json, "parameters")};
  if (!json.contains("ensemble")) return scores;  // nothing but out-of-fold means
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
      graph.members.push_back(scores.members[m].failed
                                  ? std::numeric_limits<double>::quiet_NaN()
                                  : score_from(members.at(m).at("graphs").at(g), scores.metric));
      graph.out_of_fold.push_back(graph.split != "train");
    }
    graph.combined = score_from(graphs.at(g), scores.metric);
    graph.combined_members = used;
    scores.graphs.push_back(std::move(graph));
  }
  set_data_hash(scores);
  return scores;
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

}  // namespace tpudist
