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

// The checkpoints of a run during training: the one from which the run continues, and those that it
// writes. Borrows all arguments. Methods are collective unless stated otherwise. Only rank 0
// writes, in a thread of its own while training continues. The destructor waits for that thread.
class RunCheckpoints {
 public:
  // `claim`: the lock on the folder, on rank 0; null on other ranks, and if nothing is written.
  RunCheckpoints(const TrainingSetup& setup, const RunFolder& run, const RunClaim* claim,
                 JobContext& context);

  // Restores the newest complete checkpoint, the same on all ranks, and sets damaged ones aside.
  // Without a checkpoint warns and returns false. Throws ConfigError when the checkpoint (or the
  // folder, without a checkpoint) belongs to another experiment, other data or other folds;
  // DataError when the checkpoint is damaged.
  bool restore(TrainingState& state);

  // Copies the state and starts writing its checkpoint; then removes all but the newest
  // `keep_checkpoints`. Waits first while the previous checkpoint is being written, so that a slow
  // disk does not change which checkpoints exist.
  void save(const TrainingState& state);
  // Writes best.h5 if this score of the ensemble on the validation split is finite and better than
  // all scores before. An equal score does not replace the file.
  void save_if_best(const TrainingState& state, double score);

  // On rank 0, warns of checkpoints that could not be written. Not collective.
  void log_failures();
  // Waits until all checkpoints are on the disk. Throws IoError when one could not be written and
  // no warning has reported this.
  void wait();
  // The longest time to write a checkpoint that this rank knows; 0: none written. Not collective.
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
  // Hashes of folds, segments and METIS, which do not change during training.
  const std::optional<std::uint64_t> fold_hash_, segment_hash_, metis_hash_;
  CheckpointQueue queue_;  // of rank 0
  // On rank 0: score of the best.h5 last given to the queue, and of the one on the disk.
  double best_score_ = -std::numeric_limits<double>::infinity();
  double kept_score_ = best_score_;
  std::int64_t newest_ = -1;  // step of the newest checkpoint on the disk, -1: none
  double seconds_ = 0;
};

// Writes the folds of a run into its folder as folds.yaml, unless the file has the same content.
// Does nothing without folds. Throws IoError.
void record_folds(const RunFolder& run, const FoldTable& folds);

// Throws ConfigError when the run's folds.yaml gives a graph another fold than `folds`; the message
// names the first such graph and both folds. Ignores a missing or damaged file.
void require_recorded_folds(const RunFolder& run, const FoldTable& folds);

// Throws ConfigError unless the checkpoint in the file `path` belongs to a run with the same folds
// of the training data. The message says what differs, if folds.yaml shows the difference.
void require_same_folds(const CheckpointSummary& checkpoint, const std::filesystem::path& path,
                        const RunFolder& run, const FoldTable& folds, const Dataset& training);

}  // namespace tpudist
