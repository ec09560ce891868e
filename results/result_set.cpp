#include "results/result_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/folder_lock.hpp"
#include "sweep/records/sweep_files.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

RunCondition condition_of(const SweepFiles& files, const SweepRun& run,
                          const std::optional<RunResult>& ended, bool begun) {
  if (ended) return ended->finished ? RunCondition::finished : RunCondition::failed;
  if (lock_holder(files.claims(), run.id)) return RunCondition::running;
  return begun ? RunCondition::stopped : RunCondition::waiting;
}

// A run of a sweep, begun or not.
RunRecord read_sweep_run(const SweepFiles& files, const SweepRecord& sweep, const SweepRun& entry) {
  RunRecord run;
  const fs::path folder = files.run_folder(entry);
  bool begun = true;
  try {
    run = read_run_folder(folder);
  } catch (const ConfigError&) {
    begun = false;
  }
  std::optional<RunResult> ended;
  try {
    ended = files.result(entry);
  } catch (const Error& error) {
    run.faults.push_back(error.what());
  }
  run.path = folder;
  run.index = entry.index;
  run.name = sweep.experiments.at(static_cast<std::size_t>(entry.experiment));
  run.variant = sweep.labels.at(static_cast<std::size_t>(entry.variant));
  run.collection = entry.collection;
  run.first_member = entry.first_member;
  run.members = entry.members;
  run.folds = entry.folds;
  if (entry.seed && run.config.empty())
    run.init_seed = run.order_seed = static_cast<std::int64_t>(*entry.seed);
  run.condition = condition_of(files, entry, ended, begun);
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

std::string seed_text(const RunRecord& run) {
  return run.init_seed == run.order_seed
             ? fmt::format("seed {}", run.init_seed)
             : fmt::format("seeds {}/{}", run.init_seed, run.order_seed);
}

std::string members_text(const RunRecord& run) {
  if (run.members <= 1) return fmt::format("member {}", run.first_member);
  return fmt::format("members {}-{}", run.first_member, run.first_member + run.members - 1);
}

bool all_differ(const std::vector<std::string>& texts) {
  return std::set<std::string>(texts.begin(), texts.end()).size() == texts.size();
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

// Each label has those parts only that differ between runs.
void set_labels(std::vector<RunRecord>& runs) {
  if (runs.size() == 1) {
    runs.front().label = runs.front().name;
    return;
  }
  std::vector<std::string> labels(runs.size());
  const auto parts = {
      texts_of(runs, [](const RunRecord& run) { return run.name; }),
      texts_of(runs, [](const RunRecord& run) { return run.variant; }),
      texts_of(runs, seed_text),
      texts_of(runs, members_text),
  };
  std::vector<std::vector<std::string>> used;
  for (const auto& part : parts) {
    if (count_of(part) < 2 || std::ranges::find(used, part) != used.end()) continue;
    used.push_back(part);
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] += (labels[i].empty() ? "" : " ") + part[i];
  }
  if (!all_differ(labels)) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = runs[i].path.filename().string();
      if (runs[i].path.filename() == "predictions.h5")
        labels[i] = runs[i].path.parent_path().filename().string();
    }
  }
  if (!all_differ(labels)) {
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = runs[i].path.string();
  }
  for (std::size_t i = 0; i < labels.size(); ++i) runs[i].label = labels[i];
}

}  // namespace

ResultSet read_results(const std::vector<fs::path>& inputs) {
  ResultSet results;
  for (const fs::path& input : inputs) {
    // A folder may end in a separator, and be named by a dot.
    const fs::path path = fs::path((input / "").lexically_normal()).parent_path();
    if (SweepFiles(path).exists()) {
      add_sweep(results, path);
    } else if (fs::is_regular_file(path)) {
      results.runs.push_back(read_predictions_record(path));
    } else if (fs::is_directory(path)) {
      results.runs.push_back(read_run_folder(path));
    } else {
      throw ConfigError(
          fmt::format("{}: there is no such folder of a run or of a sweep, and no such file of "
                      "predictions",
                      input.string()));
    }
  }
  if (results.runs.empty()) throw ConfigError("give the folder of a run or of a sweep");
  if (inputs.size() > 1) {
    results.sweep.reset();
    results.stage.clear();
  }
  set_labels(results.runs);
  results.title = results.sweep              ? results.sweep->name
                  : results.runs.size() == 1 ? results.runs.front().name
                                             : fmt::format("{} runs", results.runs.size());
  return results;
}

}  // namespace tpudist
