#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/folder_lock.hpp"
#include "results/records/sweep_files.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// The right to train one run of a sweep: a locked file in the sweep's folder. The kernel releases
// the lock when the process dies, so a dead process leaves no claim.
using RunClaimFile = std::unique_ptr<FolderLock>;

// The folder of a sweep, written by `tpudist sweep expand` and read by all other subcommands:
//
//   sweep.json          the frozen list of runs (SweepRecord)
//   sweep.yaml          the sweep file, with experiments/<i>/<name>.yaml, all resolved
//   stage-<k>.json      the runs of a later stage, once they are known
//   runs/<id>/          the folder of a run
//   results/<id>.json   how the run ended; <id>.retry: its failure, until it is trained again
//   claims/<id>         locked while a process trains the run
class SweepFolder {
 public:
  // Writes a new folder for a sweep file and its overrides, or opens one with the same sweep. If no
  // run has begun, that folder takes the shards that the file names now. Throws ConfigError when
  // the folder holds another sweep (naming the first run that differs), runs begun with other
  // shards, or other files; InUseError when another process writes there; also as plan_sweep.
  static SweepFolder expand(const std::filesystem::path& sweep_file,
                            const std::vector<std::string>& overrides,
                            const std::filesystem::path& folder);
  // Creates missing sub-folders. Throws ConfigError when the folder holds no sweep, DataError when
  // the sweep is damaged.
  static SweepFolder open(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return files_.path(); }
  const SweepRecord& record() const { return record_; }
  std::filesystem::path run_folder(const SweepRun& run) const { return files_.run_folder(run); }
  std::filesystem::path result_file(const SweepRun& run) const { return files_.result_file(run); }

  // The runs of a stage; nothing while they are not known.
  std::optional<std::vector<SweepRun>> stage_runs(int stage) const;
  // All known runs, stage after stage.
  std::vector<SweepRun> known_runs() const;

  // Adds to sweep.json the content of shards and the hashes of other inputs that could not be read
  // before, so that later runs must use the same data. Does nothing for a sweep of a version that
  // recorded no data.
  void freeze_data();
  // The run with its `inputs` as they are now. Throws DataError when its settings do not match its
  // id, or its graphs differ from those at the expansion; also throws as read_data.
  SweepRun checked(const SweepRun& run) const;
  // Why the first unfinished run that `checked` refuses cannot start; empty if all can start.
  std::string data_fault() const;
  // Throws DataError when a run's settings do not match its id.
  Experiment experiment_of(const SweepRun& run) const;

  // Fixes the runs of a later stage: those of the best variants of the stage before, whose runs
  // must all have ended; in a confirming stage also those of the baseline. Uses the list of another
  // process that has done this before. Throws Error when no variant of an experiment has a score,
  // InUseError while another process fixes the runs, DataError when sweep.yaml or experiments/ no
  // longer give the runs of sweep.json; also throws as `checked`.
  void freeze_stage(int stage) const;
  // Why the fixed runs of a stage differ from those that the results of the stage before would give
  // now, e.g. because a failed run was trained again; empty if they agree.
  std::string stale_reason(int stage) const;
  // Removes the run lists of the first stage whose choice is stale and of all later stages, so that
  // `sweep run` chooses again; run folders and results stay. Returns the names of these stages.
  // Throws InUseError while one of their runs is being trained.
  std::vector<std::string> take_back() const;

  std::optional<RunResult> result(const SweepRun& run) const { return files_.result(run); }
  RunState state(const SweepRun& run) const { return files_.state(run, result(run)); }
  // Claims a run. Null when another process holds the claim.
  RunClaimFile claim(const SweepRun& run) const;
  // Removes the result of a failed run, so that the run is trained again.
  void forget_failure(const SweepRun& run) const;

 private:
  SweepFolder(std::filesystem::path path, SweepRecord record);
  // The chosen variants, then the baselines that are confirmed beside them.
  std::vector<int> chosen_for(int stage) const;

  SweepFiles files_;
  SweepRecord record_;
};

// The folders of the finished runs of one variant for each collection, in a sweep's newest known
// stage: of the variant `wanted` (number or label), else of the chosen variant, else of the only
// variant. Logs these runs, and the missing runs. Throws ConfigError when none is finished or a
// collection has several variants, DataError when the sweep is damaged.
std::vector<std::filesystem::path> finished_runs(const std::filesystem::path& folder,
                                                 const std::string& wanted);

// Replaces each SWEEP or SWEEP:VARIANT in `paths` by the folders of its finished runs.
std::vector<std::filesystem::path> run_folders(const std::vector<std::filesystem::path>& paths);

}  // namespace tpudist
