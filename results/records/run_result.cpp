#include "results/records/run_result.hpp"

#include <algorithm>

#include "core/file_system.hpp"
#include "core/json.hpp"

namespace tpudist {

TPUDIST_JSON_FIELDS(RunResult::Member, number, failed, valid, valid_graphs, out_of_fold,
                    out_of_fold_graphs)
TPUDIST_JSON_FIELDS(RunResult, id, finished, error, exit_code, parameters, steps, train_seconds,
                    host, inputs, members)

constexpr const char* kResultFormat = "tpudist sweep result 1";

std::string changed_input(const Inputs& then, const Inputs& now) {
  for (const auto& [name, hash] : then) {
    if (const auto at = now.find(name); at != now.end() && at->second != hash) return name;
  }
  return {};
}

std::string_view name_of(RunState state) {
  constexpr std::string_view kNames[] = {"waiting", "running", "stopped", "failed", "finished"};
  return kNames[static_cast<int>(state)];
}

std::optional<double> mean_of_members(std::span<const RunResult::Member> members, bool valid) {
  const auto score = valid ? &RunResult::Member::valid : &RunResult::Member::out_of_fold;
  const auto graphs =
      valid ? &RunResult::Member::valid_graphs : &RunResult::Member::out_of_fold_graphs;
  const bool known = std::ranges::all_of(members, [&](const RunResult::Member& member) {
    return member.failed || member.*graphs >= 0;
  });
  double sum = 0, weights = 0;
  for (const RunResult::Member& member : members) {
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
  nlohmann::json json = result;
  json["format"] = kResultFormat;
  write_file_atomically(path, json.dump(1) + "\n");
}

std::optional<RunResult> read_result(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  RunResult result;
  read_json_file(path, kResultFormat,
                 "remove it, and `tpudist sweep run` goes on with the run's checkpoint",
                 [&](const nlohmann::json& json) { json.get_to(result); });
  return result;
}

}  // namespace tpudist
