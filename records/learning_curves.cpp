#include "records/learning_curves.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/file_system.hpp"
#include "core/json_number.hpp"

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
          .threads = line.at("threads").get<std::int64_t>()};
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

std::int64_t LearningCurves::last_step() const {
  std::int64_t last = 0;
  for (const LoggedStep& step : steps) last = std::max(last, step.step);
  for (const LoggedEvaluation& evaluation : evaluations) last = std::max(last, evaluation.step);
  return last;
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
