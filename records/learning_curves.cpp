#include "records/learning_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/file_system.hpp"
#include "core/json.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

std::vector<double> numbers(const Json& list) {
  std::vector<double> values;
  for (const Json& value : list) values.push_back(number_or_nan(value));
  return values;
}

LoggedStep step_from(const Json& line) {
  return {.step = line.at("step").get<std::int64_t>(),
          .loss = numbers(line.at("loss")),
          .norm = numbers(line.at("norm")),
          .rate = number_or_nan(line.at("rate")),
          .step_seconds = number_or_nan(line.at("step_seconds")),
          .wait_seconds = number_or_nan(line.at("wait_seconds")),
          .train_seconds = number_or_nan(line.at("train_seconds"))};
}

LoggedEvaluation evaluation_from(const Json& line) {
  return {.step = line.at("step").get<std::int64_t>(),
          .rows = line.at("rows").get<std::int64_t>(),
          .held_out_only = line.at("held_out_only").get<bool>(),
          .members = numbers(line.at("members")),
          .ensemble = number_or_nan(line.at("ensemble")),
          .train_seconds = number_or_nan(line.at("train_seconds"))};
}

RunStart start_from(const Json& line) {
  return {.step = line.at("step").get<std::int64_t>(),
          .time = line.at("time").get<std::string>(),
          .command = line.at("command").get<std::string>(),
          .version = line.at("version").get<std::string>(),
          .commit = line.at("commit").get<std::string>(),
          .host = line.at("host").get<std::string>(),
          .processor = line.at("processor").get<std::string>(),
          .ranks = line.at("ranks").get<std::int64_t>(),
          .threads = line.at("threads").get<std::int64_t>(),
          .libtorch = line.value("libtorch", ""),
          .kernels = line.value("kernels", ""),
          .device = line.value("device", "")};
}

// False where the line is none of a run.
bool add_line(LearningCurves& curves, std::string_view line) {
  try {
    const Json json = Json::parse(line);
    const std::string kind = json.at("kind").get<std::string>();
    if (kind == "step") curves.steps.push_back(step_from(json));
    if (kind == "start") curves.starts.push_back(start_from(json));
    if (kind == "evaluation") curves.evaluations.push_back(evaluation_from(json));
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> program_facts(const RunStart& start) {
  return {{"program", start.commit.empty() ? start.version
                                           : fmt::format("{} ({})", start.version, start.commit)},
          {"LibTorch", start.libtorch},
          {"processor", start.processor},
          {"kernels", start.kernels},
          {"device", start.device}};
}

std::vector<std::string> program_changes(const RunStart& before, const RunStart& now) {
  const bool kernels_are_known = !before.kernels.empty() && !now.kernels.empty();
  const auto then = program_facts(before);
  std::vector<std::string> changes;
  for (std::size_t i = 0; const auto& [name, value] : program_facts(now)) {
    const std::string& old = then[i++].second;
    if (name == "processor" && kernels_are_known) continue;
    if (!old.empty() && !value.empty() && old != value)
      changes.push_back(fmt::format("{}: {} -> {}", name, old, value));
  }
  return changes;
}

std::int64_t LearningCurves::last_step() const {
  std::int64_t last = 0;
  for (const LoggedStep& step : steps) last = std::max(last, step.step);
  for (const LoggedEvaluation& evaluation : evaluations) last = std::max(last, evaluation.step);
  return last;
}

const RunStart* LearningCurves::start_of(std::int64_t step) const {
  const RunStart* found = nullptr;
  for (const RunStart& start : starts) {
    if (start.step < step) found = &start;
  }
  return found;
}

LearningCurves read_learning_curves(const std::filesystem::path& path) {
  LearningCurves curves;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return curves;
  const std::string text = read_text_file(path);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (end == std::string_view::npos) {
      curves.torn_end = true;
      break;
    }
    if (!line.empty() && !add_line(curves, line)) ++curves.damaged_lines;
    rest.remove_prefix(end + 1);
  }
  return curves;
}

}  // namespace tpudist
