#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "dist/health/job_context.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_queue.hpp"
#include "results/records/run_folder.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// The checkpoints of a run during training: the one from which it continues, and those it writes.
// Borrows all its arguments. Its methods are collective unless stated otherwise. Only rank 0
// writes, in an own thread while training continues. The destructor waits for that thread.
class RunCheckpoints {
 public:
  // `claim`: the lock on the folder, on rank 0; null on the others, and where nothing is written.
  RunCheckpoints(const Experiment& experiment, const TrainingSetup& setup, const RunFolder& run,
                 const RunClaim* claim, JobContext& context);

  // Restores the newest complete checkpoint, the same on all ranks, and sets damaged ones aside.
  // Without one it warns and returns false. Throws ConfigError when the checkpoint, or without one
  // the folder, belongs to another experiment, other data or other folds; DataError when it is
  // damaged.
  bool restore(TrainingState& state);

  // Copies the state and starts writing its checkpoint; when that is complete, all but the newest
  // `keep_checkpoints` are removed. If the previous one is still being written, it waits for it
  // first, so that a slow disk does not change which checkpoints exist.
  void save(const TrainingState& state);
  // The same for best.h5, for an ensemble with this score on the validation split, if the score is
  // finite and better than all before. An equal score does not replace the old one.
  void save_if_best(const TrainingState& state, double score);

  // On rank 0, warns of checkpoints that could not be written. Not collective.
  void log_failures();
  // Waits until everything saved is on the disk. Throws IoError when something is not and no
  // warning could report it.
  void wait();
  // The longest time to write one, as far as this rank knows; 0: none was written. Not collective.
  double seconds() const { return seconds_; }

 private:
  bool root() const { return context_.world.rank() == 0; }
  std::optional<CheckpointFile> choose() const;
  void share(std::optional<CheckpointFile>& file) const;
  void require_settings_of_the_folder() const;
  bool scored_other_rows(const CheckpointSummary& checkpoint) const;
  void read_best_score();
  void fill(Checkpoint& copy, const TrainingState& state) const;
  std::string take_results();
  void share_results();

  const Experiment& experiment_;
  const TrainingSetup& setup_;
  const RunFolder& run_;
  const RunClaim* const claim_;
  JobContext& context_;
  // Of folds, segments and METIS, which do not change during training.
  const std::optional<std::uint64_t> fold_hash_, segment_hash_, metis_hash_;
  CheckpointQueue queue_;  // of rank 0
  // On rank 0: score of the best.h5 that is written or being written, and of the one on the disk.
  double best_score_ = -std::numeric_limits<double>::infinity();
  double kept_score_ = best_score_;
  std::int64_t newest_ = -1;  // step of the newest checkpoint on the disk, -1: none
  double seconds_ = 0;
};

// Writes the folds of a run into its folder as folds.yaml, unless it has the same content already.
// Does nothing without folds. Throws IoError.
void record_folds(const RunFolder& run, const FoldTable& folds);

// Throws ConfigError when the run's folds.yaml gives a graph another fold than `folds`; the message
// names the first such graph and both folds. A missing or damaged file is ignored.
void require_recorded_folds(const RunFolder& run, const FoldTable& folds);

// Throws ConfigError unless the checkpoint in the file `path` belongs to a run with the same folds
// of the training data. If folds.yaml shows it, the message says what differs.
void require_same_folds(const CheckpointSummary& checkpoint, const std::filesystem::path& path,
                        const RunFolder& run, const FoldTable& folds, const Dataset& training);

}  // namespace tpudist
