#include "results/scores/result_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "results/records/sweep_files.hpp"
#include "results/scores/same_training.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// A run of a sweep, begun or not.
RunRecord read_sweep_run(const SweepFiles& files, const SweepRecord& sweep, const SweepRun& entry) {
  RunRecord run;
  const fs::path folder = files.run_folder(entry);
  try {
    run = read_run_folder(folder);
  } catch (const ConfigError&) {  // not begun
  }
  std::optional<RunResult> ended;
  try {
    ended = files.result(entry);
  } catch (const Error& error) {
    run.faults.push_back(error.what());
    run.scores.reset();  // they are not of this sweep
  }
  run.path = folder;
  run.index = entry.index;
  run.name = sweep.experiments.at(static_cast<std::size_t>(entry.experiment));
  run.variant = sweep.labels.at(static_cast<std::size_t>(entry.variant));
  run.collection = entry.collection;
  run.first_member = entry.first_member;
  run.members = entry.members;
  run.folds = entry.folds;
  const auto first = std::ranges::find(sweep.runs, entry.experiment, &SweepRun::experiment);
  run.baseline = sweep.baseline && first != sweep.runs.end() && first->variant == entry.variant;
  if (entry.seed && run.config.empty())
    run.init_seed = run.order_seed = static_cast<std::int64_t>(*entry.seed);
  run.state = files.state(entry, ended);
  if (ended && !ended->finished) run.error = ended->error;
  return run;
}

void add_sweep(ResultSet& results, const fs::path& folder) {
  const SweepFiles files(folder);
  SweepRecord sweep = files.record();
  int stage = static_cast<int>(sweep.stages.size()) - 1;
  while (!files.stage_runs(sweep, stage)) --stage;  // the first stage is always known
  results.stage = sweep.stages[static_cast<std::size_t>(stage)].name;
  const std::vector<SweepRun> runs = files.stage_runs(sweep, stage).value();
  for (const SweepRun& run : runs) {
    results.runs.push_back(read_sweep_run(files, sweep, run));
  }
  results.sweep = std::move(sweep);
}

std::string members_text(const RunRecord& run) {
  if (run.members <= 1) return fmt::format("member {}", run.first_member);
  return fmt::format("members {}-{}", run.first_member, run.first_member + run.members - 1);
}

// How many different texts there are.
std::size_t count_of(const std::vector<std::string>& texts) {
  return std::set<std::string>(texts.begin(), texts.end()).size();
}

std::vector<std::string> texts_of(const std::vector<RunRecord>& runs,
                                  std::string (*text)(const RunRecord&)) {
  std::vector<std::string> texts;
  for (const RunRecord& run : runs) texts.push_back(text(run));
  return texts;
}

// "optimizer.lr=0.001, batch.slates=4": the first two of `keys`, which differ among the runs.
std::string settings_text(const RunRecord& run, const std::vector<std::string>& keys) {
  constexpr std::size_t kMostKeys = 2;
  std::string text;
  for (std::size_t k = 0; k < std::min(keys.size(), kMostKeys); ++k) {
    const std::string value = run.setting(keys[k]);
    text += fmt::format("{}{}={}", k > 0 ? ", " : "", keys[k], value.empty() ? "(not set)" : value);
  }
  if (keys.size() > kMostKeys) text += fmt::format(", {} more", keys.size() - kMostKeys);
  return text;
}

// Makes variants of runs outside of sweeps that share a name but have different settings.
void log_variants_apart(std::vector<RunRecord>& runs) {
  std::map<std::pair<std::string, std::string>, std::vector<RunRecord*>> experiments;
  for (RunRecord& run : runs) {
    if (run.index < 0 && !run.config.empty())
      experiments[{run.name, run.collection}].push_back(&run);
  }
  for (const auto& [name, own] : experiments) {
    std::vector<std::string> keys;
    for (const RunRecord* run : own) {
      for (const std::string& change : different_settings(*own.front(), *run)) {
        std::string key = change.substr(0, change.find(':'));
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
      }
    }
    if (keys.empty()) continue;
    std::map<std::string, std::vector<RunRecord*>> variants;
    for (RunRecord* run : own) variants[settings_text(*run, keys)].push_back(run);
    // Runs may also differ in keys that the text does not name: a number tells them apart.
    for (auto& [text, alike] : variants) {
      std::vector<const RunRecord*> kinds;
      for (RunRecord* run : alike) {
        const auto same = std::ranges::find_if(
            kinds, [&](const RunRecord* kind) { return different_settings(*kind, *run).empty(); });
        const auto number = same - kinds.begin();
        if (same == kinds.end()) kinds.push_back(run);
        run->variant += " " + text + (number > 0 ? fmt::format(" ({})", number + 1) : "");
      }
    }
  }
}

bool is_run(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / "config.yaml", ignored) || fs::exists(path / "metrics.jsonl", ignored) ||
         fs::exists(path / "predictions.h5", ignored);
}

// The folders of runs and sweeps in a folder that is neither.
std::vector<fs::path> runs_within(const fs::path& folder, int levels) {
  std::vector<fs::path> found, children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.is_directory(ignored)) children.push_back(entry.path());
  }
  std::ranges::sort(children);
  for (const fs::path& child : children) {
    if (is_run(child) || SweepFiles(child).exists()) {
      found.push_back(child);
    } else if (levels > 1) {
      std::ranges::copy(runs_within(child, levels - 1), std::back_inserter(found));
    }
  }
  return found;
}

// A folder may end in a separator, and be named by a dot.
fs::path plain_path(const fs::path& input) {
  const fs::path path = fs::path((input / "").lexically_normal()).parent_path();
  return path.empty() ? fs::path(".") : path;
}

// Replaces folders of runs and sweeps by the runs and sweeps in them.
std::vector<fs::path> places_of(const std::vector<fs::path>& inputs) {
  std::vector<fs::path> places;
  for (const fs::path& input : inputs) {
    const fs::path path = plain_path(input);
    if (!fs::is_directory(path) || is_run(path) || SweepFiles(path).exists()) {
      places.push_back(path);
      continue;
    }
    const std::vector<fs::path> within = runs_within(path, 3);
    if (within.empty()) places.push_back(path);  // reading it says what is missing
    std::ranges::copy(within, std::back_inserter(places));
  }
  return places;
}

// A label has only the parts that differ between runs.
void set_labels(std::vector<RunRecord>& runs) {
  if (runs.size() == 1) {
    runs.front().label = runs.front().name;
    return;
  }
  std::vector<std::string> labels(runs.size());
  const auto parts = {
      texts_of(runs, [](const RunRecord& run) { return run.name; }),
      texts_of(runs, [](const RunRecord& run) { return run.variant; }),
      texts_of(runs,
               [](const RunRecord& run) { return seeds_text(run.init_seed, run.order_seed); }),
      texts_of(runs, members_text),
  };
  std::vector<std::vector<std::string>> used;
  for (const auto& part : parts) {
    if (count_of(part) < 2 || std::ranges::find(used, part) != used.end()) continue;
    used.push_back(part);
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] += (labels[i].empty() ? "" : " ") + part[i];
  }
  if (count_of(labels) < labels.size()) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = runs[i].path.filename().string();
      if (runs[i].path.filename() == "predictions.h5")
        labels[i] = runs[i].path.parent_path().filename().string();
    }
  }
  if (count_of(labels) < labels.size()) {
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = runs[i].path.string();
  }
  for (std::size_t i = 0; i < labels.size(); ++i) runs[i].label = labels[i];
}

}  // namespace

ResultSet read_results(const std::vector<fs::path>& inputs) {
  ResultSet results;
  const std::vector<fs::path> places = places_of(inputs);
  for (const fs::path& path : places) {
    if (SweepFiles(path).exists()) {
      add_sweep(results, path);
    } else if (fs::is_regular_file(path)) {
      results.runs.push_back(read_predictions_record(path));
    } else if (fs::is_directory(path)) {
      results.runs.push_back(read_run_folder(path));
    } else {
      throw ConfigError(fmt::format(
          "{}: there is no such folder of a run or of a sweep, and no such file of predictions{}",
          path.string(), near_path(path, [](const auto&) { return true; }, {"runs", "sweeps"})));
    }
  }
  if (results.runs.empty()) throw ConfigError("give the folder of a run or of a sweep");
  if (places.size() > 1) {
    results.sweep.reset();
    results.stage.clear();
  }
  log_variants_apart(results.runs);
  set_labels(results.runs);
  results.title = results.sweep              ? results.sweep->name
                  : results.runs.size() == 1 ? results.runs.front().name
                                             : fmt::format("{} runs", results.runs.size());
  return results;
}

}  // namespace tpudist
