#include "results/records/learning_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/file_system.hpp"
#include "core/json.hpp"

namespace tpudist {

TPUDIST_JSON_FIELDS(LearningCurves::Step, step, loss, norm, rate, step_seconds, wait_seconds,
                    train_seconds)
TPUDIST_JSON_FIELDS(LearningCurves::Evaluation, step, rows, held_out_only, members, ensemble,
                    train_seconds)
TPUDIST_JSON_FIELDS(RunStart, step, time, command, version, commit, host, processor, ranks, threads,
                    libtorch, kernels, device)

namespace {

using Json = nlohmann::json;

// False if this is no line of a run.
bool add_line(LearningCurves& curves, std::string_view line) {
  try {
    const Json json = Json::parse(line);
    const std::string kind = json.at("kind").get<std::string>();
    if (kind == "step") curves.steps.push_back(json);
    if (kind == "start") curves.starts.push_back(json);
    if (kind == "evaluation") curves.evaluations.push_back(json);
    return true;
  } catch (const std::exception&) {
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
  const auto then = program_facts(before);
  std::vector<std::string> changes;
  for (std::size_t i = 0; const auto& [name, value] : program_facts(now)) {
    const std::string& old = then[i++].second;
    if (name == "processor") continue;  // `kernels` says what matters
    if (!old.empty() && !value.empty() && old != value)
      changes.push_back(fmt::format("{}: {} -> {}", name, old, value));
  }
  return changes;
}

std::int64_t LearningCurves::last_step() const {
  std::int64_t last = 0;
  for (const LearningCurves::Step& step : steps) last = std::max(last, step.step);
  for (const LearningCurves::Evaluation& evaluation : evaluations)
    last = std::max(last, evaluation.step);
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
