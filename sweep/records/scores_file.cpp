#include "sweep/records/scores_file.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json_fault.hpp"
#include "core/json_number.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

double number_or_nan(const Json& json) {
  return number_from(json).value_or(std::numeric_limits<double>::quiet_NaN());
}

std::uint64_t hash_from(const Json& json, const char* key) {
  return from_hex(json.value(key, "")).value_or(0);
}

ScoresFile::Member member_from(const Json& json, const std::string& metric) {
  ScoresFile::Member member;
  if (json.contains("number")) member.number = json.at("number").get<int>();
  member.used = json.at("used").get<bool>();
  if (json.contains("mean")) member.mean = number_from(json.at("mean").at(metric));
  for (const Json& graph : json.at("graphs"))
    member.scores.push_back(number_or_nan(graph.at(metric)));
  return member;
}

ScoresFile scores_from(const Json& json) {
  ScoresFile file;
  file.parameters = hash_from(json, "parameters");
  if (json.contains("ensemble")) {
    const Json& ensemble = json.at("ensemble");
    const auto metric = ensemble.at("primary").get<std::string>();
    file.split = json.at("split").get<std::string>();
    file.most_rows = json.value("most_rows", std::int64_t{0});
    file.combine = json.value("combine", "");
    for (const Json& graph : ensemble.at("graphs")) {
      file.graphs.push_back({graph.at("name").get<std::string>(),
                             graph.at("configs").get<std::int64_t>(), hash_from(graph, "data_hash"),
                             number_or_nan(graph.at(metric))});
    }
    for (const Json& member : json.at("members"))
      file.members.push_back(member_from(member, metric));
  }
  if (json.contains("out_of_fold")) {
    for (const Json& member : json.at("out_of_fold").at("members")) {
      file.out_of_fold.push_back({member.at("number").get<int>(), member.at("graphs").get<int>(),
                                  number_from(member.at("score"))});
    }
  }
  return file;
}

}  // namespace

ScoresFile read_scores_file(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  try {
    return scores_from(Json::parse(text));
  } catch (const Json::exception& error) {
    throw DataError(fmt::format(
        "{}: damaged: {}; `tpudist train --resume` with the run's folder writes it again",
        path.string(), json_fault(error.what())));
  }
}

}  // namespace tpudist
