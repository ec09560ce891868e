#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/training_state.hpp"
#include "train/state/checkpoint_queue.hpp"
#include "train/state/run_folder.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// The checkpoints of a run that is being trained: what it goes on from, and what it leaves behind.
// Borrows all that it is made of. Its methods are collective unless they say otherwise; only rank 0
// writes, in a thread of its own, while training goes on. The destructor waits for that thread.
class RunCheckpoints {
 public:
  // `claim`: the lock on the folder, on rank 0; null on the others.
  RunCheckpoints(const Experiment& experiment, const TrainingSetup& setup, const RunFolder& run,
                 const RunClaim* claim, JobContext& context);

  // Takes the newest checkpoint that is whole, the same on all ranks, and sets damaged ones aside.
  // False when there is none, with a warning. Throws ConfigError when it, or the folder where it has
  // none, is of another experiment, other data or other folds; DataError when it is damaged.
  bool restore(TrainingState& state);

  // Copies the state and has its checkpoint written, which removes all but the newest
  // `keep_checkpoints` once it is whole. Where the one before is still being written, waits for that
  // first, so that the same checkpoints are there however slow the disk is.
  void save(const TrainingState& state);
  // The same for best.h5, of an ensemble with this score on the validation split, where that is finite
  // and better than all before. A score equal to the best one so far does not replace it.
  void save_if_best(const TrainingState& state, double score);

  // Warns, on rank 0, of checkpoints that could not be written. Not collective.
  void tell();
  // Waits until all that was saved is on the disk. Throws IoError when something of it is not, and
  // could not be told before.
  void wait();
  // How long the slowest one took to be written, as far as this rank knows; 0: none was. Not collective.
  double seconds() const { return seconds_; }

 private:
  bool root() const { return context_.world.rank() == 0; }
  std::int64_t choose() const;
  void require_settings_of_the_folder() const;
  void read_best_score();
  void fill(Checkpoint& copy, const TrainingState& state) const;
  std::string take_results();
  void share_results();

  const Experiment& experiment_;
  const TrainingSetup& setup_;
  const RunFolder& run_;
  const RunClaim* const claim_;
  JobContext& context_;
  const std::optional<std::uint64_t>
      fold_hash_;          // of the folds, which stay as they are while it trains
  CheckpointQueue queue_;  // of rank 0
  // On rank 0: of the best.h5 that is written or on its way, and of the one on the disk.
  double best_score_ = -std::numeric_limits<double>::infinity();
  double kept_score_ = best_score_;
  std::int64_t newest_ = -1;  // step of the newest checkpoint on the disk, -1: none
  double seconds_ = 0;
};

}  // namespace tpudist
