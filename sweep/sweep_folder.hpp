#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/folder_lock.hpp"
#include "sweep/records/sweep_files.hpp"

namespace tpudist {

enum class RunState {
  waiting,  // nobody has begun it
  running,  // a process holds its claim
  stopped,  // it was stopped or killed; `sweep run` goes on with its newest checkpoint
  failed,   // it ended with an error; `sweep retry` frees it
  finished,
};

std::string_view name_of(RunState state);

// The right to train one run of a sweep: a locked file of the sweep's folder. The kernel gives the lock
// back when the process dies, so that a dead process leaves no claim behind.
using RunClaimFile = std::unique_ptr<FolderLock>;

// The folder of a sweep, written by `tpudist sweep expand` and read by all other subcommands:
//
//   sweep.json          the frozen list of runs (SweepRecord)
//   sweep.yaml          the sweep file, with experiments/<i>/<name>.yaml, all resolved
//   stage-<k>.json      the runs of a later stage, once they are known
//   runs/<id>/          the folder of a run
//   results/<id>.json   how it ended
//   claims/<id>         locked while a process trains it
class SweepFolder {
 public:
  // Writes a new folder for a sweep file and its overrides, or opens one that holds this very sweep.
  // Throws ConfigError when the folder holds another sweep (naming the first run that differs) or
  // anything else, InUseError when another process writes there; errors of plan_sweep.
  static SweepFolder expand(const std::filesystem::path& sweep_file,
                            const std::vector<std::string>& overrides,
                            const std::filesystem::path& folder);
  // Makes folders below it that are missing. Throws ConfigError when the folder holds no sweep, DataError
  // when it is damaged.
  static SweepFolder open(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return files_.path(); }
  const SweepRecord& record() const { return record_; }
  std::filesystem::path run_folder(const SweepRun& run) const { return files_.run_folder(run); }
  std::filesystem::path result_file(const SweepRun& run) const { return files_.result_file(run); }

  // The runs of a stage; nothing while they are not known yet.
  std::optional<std::vector<SweepRun>> stage_runs(int stage) const;
  // All runs that are known, stage after stage.
  std::vector<SweepRun> known_runs() const;

  // Writes into sweep.json what the shards hold that could not be read before, so that later runs are
  // held to it. Leaves a sweep alone that was expanded by a version that did not look at its data.
  void freeze_data();
  // What a run trains on now, in its `train_data` and `valid_data`. Throws DataError where its
  // settings do not have its id, or its graphs are not those that the sweep was expanded for.
  SweepRun checked(const SweepRun& run) const;
  // Throws DataError where a run's settings do not have its id.
  void require_id(const SweepRun& run) const;

  // Freezes the runs of a stage after the first: those of the variants that did best in the stage
  // before, of which every run must have ended. Whoever comes second finds the first one's list.
  // Throws Error when no variant of an experiment has a score, InUseError while another process does
  // the same; DataError where sweep.yaml or experiments/ no longer give the runs of sweep.json.
  void freeze_stage(int stage) const;
  // Why the frozen runs of a stage are not those that the results of the stage before choose now, e.g.
  // because one of its runs had failed and was trained again; empty where they are.
  std::string stale_reason(int stage) const;
  // Forgets the first stage whose choice is stale and all later ones, so that `sweep run` chooses again;
  // their run folders and results stay. Returns their names. Throws InUseError while one of their
  // runs is trained.
  std::vector<std::string> take_back() const;

  std::optional<RunResult> result(const SweepRun& run) const { return files_.result(run); }
  // A claim that another process holds for a moment only, to look at it, counts as free.
  RunState state(const SweepRun& run) const;
  // Nothing when another process holds it.
  RunClaimFile claim(const SweepRun& run) const;
  // Removes the result of a failed run, so that it is trained again.
  void forget_failure(const SweepRun& run) const;

 private:
  SweepFolder(std::filesystem::path path, SweepRecord record);
  std::vector<int> chosen_for(int stage) const;

  SweepFiles files_;
  SweepRecord record_;
};

}  // namespace tpudist
