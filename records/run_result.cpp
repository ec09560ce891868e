#include "records/run_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

constexpr const char* kResultFormat = "tpudist sweep result 1";

Json to_json(const RunResult& result) {
  Json members = Json::array();
  for (const MemberResult& member : result.members) {
    members.push_back({{"number", member.number},
                       {"failed", member.failed},
                       {"valid", number_or_null(member.valid)},
                       {"valid_graphs", member.valid_graphs},
                       {"out_of_fold", number_or_null(member.out_of_fold)},
                       {"out_of_fold_graphs", member.out_of_fold_graphs}});
  }
  return {{"format", kResultFormat},
          {"id", result.id},
          {"finished", result.finished},
          {"error", result.error},
          {"exit_code", result.exit_code},
          {"parameters", result.parameters},
          {"steps", result.steps},
          {"train_seconds", result.train_seconds},
          {"host", result.host},
          {"inputs", result.inputs},
          {"members", members}};
}

RunResult result_from(const Json& json) {
  if (json.at("format").get<std::string>() != kResultFormat)
    throw DataError("it has another format");
  RunResult result;
  result.id = json.at("id").get<std::string>();
  result.finished = json.at("finished").get<bool>();
  result.error = json.at("error").get<std::string>();
  result.exit_code = json.at("exit_code").get<int>();
  result.parameters = json.at("parameters").get<std::string>();
  result.steps = json.at("steps").get<std::int64_t>();
  result.train_seconds = json.at("train_seconds").get<double>();
  result.host = json.at("host").get<std::string>();
  for (const Json& member : json.at("members")) {
    result.members.push_back(
        {member.at("number").get<int>(), member.at("failed").get<bool>(),
         number_from(member.at("valid")), number_from(member.at("out_of_fold")),
         member.value("valid_graphs", -1), member.value("out_of_fold_graphs", -1)});
  }
  result.inputs = inputs_from(json);
  return result;
}

}  // namespace

Inputs inputs_from(const Json& json) {
  Inputs inputs = json.value("inputs", Inputs());
  for (const std::string split : {"train", "valid"}) {  // of older versions
    if (const std::string hash = json.value(split + "_data", ""); !hash.empty())
      inputs["data." + split] = hash;
  }
  return inputs;
}

std::string changed_input(const Inputs& then, const Inputs& now) {
  for (const auto& [name, hash] : then) {
    if (const auto at = now.find(name); at != now.end() && at->second != hash) return name;
  }
  return {};
}

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::waiting:
      return "waiting";
    case RunState::running:
      return "running";
    case RunState::stopped:
      return "stopped";
    case RunState::failed:
      return "failed";
    case RunState::finished:
      break;
  }
  return "finished";
}

std::optional<double> mean_of_members(std::span<const MemberResult> members, bool valid) {
  const auto score = valid ? &MemberResult::valid : &MemberResult::out_of_fold;
  const auto graphs = valid ? &MemberResult::valid_graphs : &MemberResult::out_of_fold_graphs;
  const bool known = std::ranges::all_of(
      members, [&](const MemberResult& member) { return member.failed || member.*graphs >= 0; });
  double sum = 0, weights = 0;
  for (const MemberResult& member : members) {
    const double weight = known ? member.*graphs : 1;
    if (member.failed || weight == 0) continue;
    if (!(member.*score)) return std::nullopt;
    sum += weight * *(member.*score);
    weights += weight;
  }
  if (weights == 0) return std::nullopt;
  return sum / weights;
}

std::optional<double> RunResult::valid() const {
  return mean_of_members(members, /*valid=*/true);
}

std::optional<double> RunResult::out_of_fold() const {
  return mean_of_members(members, /*valid=*/false);
}

void write_result(const std::filesystem::path& path, const RunResult& result) {
  std::error_code ignored;  // writing the file reports errors
  std::filesystem::create_directories(path.parent_path(), ignored);
  write_file_atomically(path, to_json(result).dump(1) + "\n");
}

std::optional<RunResult> read_result(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string text = read_text_file(path);
  try {
    return result_from(Json::parse(text));
  } catch (const std::exception& error) {
    throw DataError(fmt::format(
        "{}: damaged: {}; remove it, and `tpudist sweep run` goes on with the run's checkpoint",
        path.string(), json_fault(error.what())));
  }
}

}  // namespace tpudist
