#include "launch/sweep/sweep_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "launch/sweep/choice.hpp"
#include "launch/sweep/sweep_data.hpp"
#include "launch/sweep/sweep_plan.hpp"
#include "results/records/run_folder.hpp"
#include "results/scores/system_scores.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = "sweep.json";
constexpr const char* kSweepFile = "sweep.yaml";
constexpr const char* kWriter = "tpudist sweep";

// Writes the sources of later stages: the experiments as read, and the sweep file with their paths.
void write_sources(const fs::path& folder, const SweepPlan& plan, const fs::path& sweep_file,
                   const std::vector<std::string>& overrides) {
  std::vector<std::string> places;
  for (std::size_t i = 0; i < plan.file.experiments.size(); ++i) {
    const fs::path& source = plan.file.experiments[i];
    const fs::path place = fs::path("experiments") / std::to_string(i) / source.filename();
    make_folder((folder / place).parent_path());
    write_file_atomically(folder / place, resolved_base(plan, static_cast<int>(i)));
    places.push_back(place.string());
  }
  std::vector<std::string> moved = overrides;
  moved.push_back("experiments=" + to_yaml(places));
  write_file_atomically(folder / kSweepFile,
                        SweepFile::load(sweep_file, moved, folder).resolved_yaml);
}

constexpr int kTries = 250;  // tasks of an array may begin at once

// A lock that other processes may hold for a moment. Throws InUseError after kTries tries.
std::unique_ptr<FolderLock> lock_soon(const fs::path& folder, std::string_view command,
                                      std::string_view name, int tries) {
  constexpr std::chrono::milliseconds kPause{20};
  for (int i = 1;; ++i) {
    try {
      return std::make_unique<FolderLock>(folder, command, name);
    } catch (const InUseError&) {
      if (i == tries) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw IoError(fmt::format("remove {}: {}", path.string(), error.message()));
}

std::string shards_of(const SweepRun& run) {
  ConfigDocument document = ConfigDocument::parse(run.config, kRecord);
  return document.root().child("data").text("shards", "");
}

void make_parts(const fs::path& folder) {
  for (const char* part : {"runs", "results", "claims"}) make_folder(folder / part);
}

void require_same_sweep(const SweepRecord& there, const SweepRecord& wanted,
                        const fs::path& folder) {
  const std::size_t common = std::min(there.runs.size(), wanted.runs.size());
  std::size_t at = 0;
  while (at < common && there.runs[at].id == wanted.runs[at].id) ++at;
  const bool same = at == there.runs.size() && at == wanted.runs.size() &&
                    there.stages.size() == wanted.stages.size() && there.choice == wanted.choice &&
                    there.keep == wanted.keep;
  if (same) return;
  throw ConfigError(
      fmt::format("{}: holds another sweep (\"{}\", {}{}); give this one a folder of its own with "
                  "--dir, or remove that one",
                  folder.string(), there.name, counted(std::ssize(there.runs), "run"),
                  at < common ? fmt::format(", the first that differs is run {}", at) : ""));
}

}  // namespace

SweepFolder::SweepFolder(fs::path path, SweepRecord record)
    : files_(std::move(path)), record_(std::move(record)) {}

SweepFolder SweepFolder::expand(const fs::path& sweep_file,
                                const std::vector<std::string>& overrides, const fs::path& folder) {
  const SweepFile file = SweepFile::load(sweep_file, overrides);
  const auto write = [&](const SweepPlan& plan) {
    write_sources(folder, plan, sweep_file, overrides);
    make_parts(folder);
    write_record(folder / kRecord, plan.record);
    return SweepFolder(folder, plan.record);
  };
  if (!fs::exists(folder / kRecord)) {
    const SweepPlan plan = plan_sweep(file);
    std::error_code error;
    const bool unfinished = fs::exists(folder / kLockName) || fs::exists(folder / kSweepFile) ||
                            fs::exists(folder / "experiments");
    if (fs::exists(folder) && !fs::is_empty(folder, error) && !unfinished)
      throw ConfigError(fmt::format(
          "{}: holds other files and no sweep; give the sweep a folder of its own with --dir",
          folder.string()));
    make_folder(folder);
    const auto lock = lock_soon(folder, kWriter, kLockName, kTries);
    if (!fs::exists(folder / kRecord)) return write(plan);
  }
  SweepFolder there = open(folder);
  const SweepRecord wanted = plan_sweep(file, &there.record_).record;
  require_same_sweep(there.record_, wanted, folder);
  const auto [old, other] =
      std::ranges::mismatch(there.record_.runs, wanted.runs, [](const auto& a, const auto& b) {
        return a.config == b.config || shards_of(a) == shards_of(b);
      });
  if (old == there.record_.runs.end()) return there;
  const auto lock = lock_soon(folder, kWriter, kLockName, kTries);
  for (const SweepRun& run : there.known_runs()) {
    if (there.state(run) == RunState::waiting && !RunFolder::exists(there.run_folder(run)))
      continue;
    throw ConfigError(
        fmt::format("{}: {} has begun with the shards in {}, not {}; give those (TPUDIST_DATA, "
                    "data.shards), or expand into another folder (--dir)",
                    folder.string(), name_of(run), shards_of(*old), shards_of(*other)));
  }
  spdlog::info("{}: takes the shards in {}, no longer those in {}: no run has begun",
               folder.string(), shards_of(*other), shards_of(*old));
  return write(plan_sweep(file));
}

SweepFolder SweepFolder::open(const fs::path& folder) {
  if (!fs::exists(folder / kRecord)) {
    throw ConfigError(fmt::format("{}: holds no sweep; make one with `tpudist sweep expand FILE`",
                                  folder.string()));
  }
  try {
    make_parts(folder);
  } catch (const IoError&) {  // a read-only folder can still be looked at
  }
  return SweepFolder(folder, read_record(folder / kRecord));
}

void SweepFolder::freeze_data() {
  const auto is_unknown = [](const SweepRun& run) { return run.inputs.empty(); };
  if (std::ranges::none_of(record_.runs, is_unknown)) return;
  const auto lock = lock_soon(path(), kWriter, kLockName, kTries);
  SweepRecord record = read_record(files_.record_file());
  bool found = false;
  Inputs known;
  for (SweepRun& run : record.runs) {
    if (!is_unknown(run)) continue;
    const Experiment experiment = experiment_of(run);
    const FrozenData* data = add_data(record.data, experiment);
    if (!data) continue;
    set_data_hashes(run, *data, experiment, known);
    found = found || !run.inputs.empty();
  }
  if (found) write_record(files_.record_file(), record);
  record_ = std::move(record);
}

Experiment SweepFolder::experiment_of(const SweepRun& run) const {
  ConfigDocument document = ConfigDocument::parse(run.config, kRecord);
  Experiment experiment = read_experiment(document);
  if (to_hex(experiment.numbers_hash) == run.id) return experiment;
  const bool first = run.index < record_.stages.front().count;
  throw DataError(fmt::format(
      "{}: the settings of run {} are not those of its id {}; put them back, or expand the sweep "
      "again into another folder (--dir)",
      first ? files_.record_file().string() : fmt::format("{}/stage-*.json", path().string()),
      run.index, run.id));
}

SweepRun SweepFolder::checked(const SweepRun& run) const {
  const Experiment experiment = experiment_of(run);
  SweepRun now = run;
  std::error_code none;
  const bool begun = std::ranges::any_of(std::array{"runs", "results"}, [&](const char* part) {
    return !fs::is_empty(path() / part, none) && !none;
  });
  require_same_data(run, now, experiment, find_data(record_.data, experiment), begun);
  return now;
}

std::string SweepFolder::data_fault() const {
  std::set<std::pair<int, Inputs>> seen;
  for (const SweepRun& run : known_runs()) {
    if (result(run) || !seen.emplace(run.variant, run.inputs).second) continue;
    try {
      checked(run);
    } catch (const Error& error) {
      return error.what();
    }
  }
  return {};
}

std::optional<std::vector<SweepRun>> SweepFolder::stage_runs(int stage) const {
  return files_.stage_runs(record_, stage);
}

std::vector<SweepRun> SweepFolder::known_runs() const {
  std::vector<SweepRun> all;
  for (int stage = 0; stage < static_cast<int>(record_.stages.size()); ++stage) {
    const auto runs = stage_runs(stage);
    if (!runs) break;
    all.insert(all.end(), runs->begin(), runs->end());
  }
  return all;
}

void SweepFolder::freeze_stage(int stage) const {
  const FolderLock lock(path(), kWriter);
  if (fs::exists(files_.stage_file(stage))) return;
  const std::vector<int> chosen = chosen_for(stage);
  for (const int variant : chosen)  // before the new runs read their inputs
    checked(*std::ranges::find(record_.runs, variant, &SweepRun::variant));
  const SweepPlan plan = plan_sweep(SweepFile::load(path() / kSweepFile), &record_);
  if (!std::ranges::equal(plan.record.runs, record_.runs, {}, &SweepRun::id, &SweepRun::id)) {
    throw DataError(fmt::format(
        "{} or the files in {} no longer give the runs of sweep.json; put them back as `tpudist "
        "sweep expand` wrote them, or expand the sweep again into another folder (--dir)",
        (path() / kSweepFile).string(), (path() / "experiments").string()));
  }
  write_stage_runs(files_.stage_file(stage), runs_of_stage(plan, stage, chosen));
}

std::vector<int> SweepFolder::chosen_for(int stage) const {
  const auto before = stage_runs(stage - 1);
  if (!before) throw Error(ErrorKind::failed, "the stage before is not known yet");
  std::vector<std::optional<RunResult>> results;
  for (const SweepRun& run : *before) results.push_back(result(run));
  const bool confirms = record_.stages[stage].confirms;
  std::vector<int> chosen = chosen_variants(record_, *before, results, confirms ? 0 : record_.keep);
  if (!confirms || !record_.baseline) return chosen;
  for (int e = 0; e < static_cast<int>(record_.experiments.size()); ++e) {
    const int baseline = std::ranges::find(record_.runs, e, &SweepRun::experiment)->variant;
    if (std::ranges::find(chosen, baseline) == chosen.end()) chosen.push_back(baseline);
  }
  return chosen;
}

std::string SweepFolder::stale_reason(int stage) const {
  const auto runs = stage_runs(stage);
  if (stage == 0 || !runs) return {};
  const std::vector<SweepRun> before = stage_runs(stage - 1).value();
  const auto open = std::ranges::find_if(before, [&](const SweepRun& run) { return !result(run); });
  if (open != before.end())
    return fmt::format("it was made without run {}, which has not ended", open->index);
  std::vector<int> now;
  try {
    now = chosen_for(stage);
  } catch (const Error& error) {
    return error.what();
  }
  std::set<int> frozen;
  for (const SweepRun& run : *runs) frozen.insert(run.variant);
  if (frozen == std::set<int>(now.begin(), now.end())) return {};
  if (record_.stages[stage].confirms) now.resize(record_.experiments.size());  // without baselines
  std::vector<std::string> names;
  for (const int variant : now) names.push_back(record_.label(variant));
  return fmt::format("by the results as they are now it is {}", join(names, ", "));
}

std::vector<std::string> SweepFolder::take_back() const {
  const FolderLock lock(path(), kWriter);
  const int stages = static_cast<int>(record_.stages.size());
  int first = 1;
  while (first < stages && stale_reason(first).empty()) ++first;
  std::vector<std::string> names;
  for (int stage = first; stage < stages; ++stage) {
    const auto runs = stage_runs(stage);
    if (!runs) break;
    for (const SweepRun& run : *runs) {
      if (state(run) != RunState::running) continue;
      throw InUseError(fmt::format("{}: {} of \"{}\" is being trained; stop that job first",
                                   path().string(), name_of(run), record_.stages.at(stage).name));
    }
    names.push_back(record_.stages[stage].name);
  }
  for (int stage = first + static_cast<int>(names.size()) - 1; stage >= first; --stage)
    remove_file(files_.stage_file(stage));
  return names;
}

RunClaimFile SweepFolder::claim(const SweepRun& run) const {
  RunClaimFile claim;
  try {
    const char* const job = std::getenv("SLURM_JOB_ID");
    claim = lock_soon(files_.claims(),
                      std::string("tpudist sweep run") + (job ? fmt::format(" (job {})", job) : ""),
                      run.id, 5);
  } catch (const InUseError&) {
    return nullptr;
  }
  std::error_code none;
  fs::remove(files_.retry_file(run), none);
  // `expand` takes other shards as long as it sees no claim, and writes the record under this lock.
  const auto lock = lock_soon(path(), kWriter, kLockName, kTries);
  const std::vector<SweepRun> runs = read_record(files_.record_file()).runs;
  const auto now = std::ranges::find(runs, run.id, &SweepRun::id);
  if (now != runs.end() && now->config != run.config)
    throw ConfigError(
        fmt::format("{}: was expanded again with the shards in {}; start `tpudist sweep run` again",
                    path().string(), shards_of(*now)));
  return claim;
}

void SweepFolder::forget_failure(const SweepRun& run) const {
  const auto ended = result(run);
  if (ended && !ended->finished) fs::rename(result_file(run), files_.retry_file(run));
}

std::vector<std::filesystem::path> finished_runs(const std::filesystem::path& folder,
                                                 const std::string& wanted) {
  const SweepFolder sweep = SweepFolder::open(folder);
  int stage = static_cast<int>(sweep.record().stages.size()) - 1;
  while (!sweep.stage_runs(stage)) --stage;  // the first stage is always known
  const Stage& place = sweep.record().stages[stage];
  std::vector<std::filesystem::path> finished;
  const std::vector<SweepRun> runs = sweep.stage_runs(stage).value();
  std::map<std::string, int> variants;  // of each collection
  std::set<std::string> names;
  const auto label_of = [&](const SweepRun& run) { return sweep.record().label(run.variant); };
  for (const SweepRun& run : runs) names.insert(fmt::format("{} ({})", run.variant, label_of(run)));
  for (const SweepRun& run : runs) {
    const std::string label = label_of(run);
    if (wanted.empty() ? place.confirms && is_baseline(runs, run)
                       : label != wanted && std::to_string(run.variant) != wanted)
      continue;
    if (variants.emplace(run.collection, run.variant).first->second != run.variant)
      throw ConfigError(
          fmt::format("{} has several variants of {}, which are no members of one ensemble; name "
                      "one as {}:NUMBER: {}",
                      folder.string(), run.collection, folder.string(), fmt::join(names, ", ")));
    const auto ended = sweep.result(run);
    if (ended && ended->finished) {
      finished.push_back(sweep.run_folder(run));
      spdlog::info("{}: run {}: {}", finished.back().string(), run.index,
                   sweep.record().text_of(run));
    } else {
      spdlog::warn("{}: {} is left out: it has not finished", folder.string(), name_of(run));
    }
  }
  if (finished.empty()) {
    throw ConfigError(fmt::format(
        "{}: no run{} of \"{}\", which has variants {}, has finished; see `tpudist sweep status`",
        folder.string(), wanted.empty() ? "" : " of variant " + wanted, place.name,
        fmt::join(names, ", ")));
  }
  return finished;
}

std::vector<std::filesystem::path> run_folders(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> folders;
  for (const auto& path : paths) {
    const auto [folder, variant] = split_variant(path.string());
    if (std::filesystem::exists(std::filesystem::path(folder) / "sweep.json"))
      std::ranges::move(finished_runs(folder, variant), std::back_inserter(folders));
    else
      folders.push_back(path);
  }
  return folders;
}

}  // namespace tpudist
