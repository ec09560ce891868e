#pragma once

#include <cstdint>
#include <limits>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/training_state.hpp"
#include "train/state/run_folder.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// The checkpoints of a run that is being trained: what it goes on from, and what it leaves behind.
// Borrows all that it is made of. Its methods are collective; only rank 0 writes.
class RunCheckpoints {
 public:
  // `claim`: the lock on the folder, on rank 0; null on the others.
  RunCheckpoints(const Experiment& experiment, const TrainingSetup& setup, const RunFolder& run,
                 const RunClaim* claim, JobContext& context);

  // Takes the newest checkpoint that is whole, the same on all ranks, and sets damaged ones aside.
  // False when there is none, with a warning. Throws ConfigError when it, or the folder where it has
  // none, is of another experiment, other data or other folds; DataError when it is damaged.
  bool restore(TrainingState& state);

  // Writes the checkpoint of the state's step, and removes all but the newest `keep_checkpoints`.
  // Returns how long that took, in seconds.
  double save(const TrainingState& state) const;
  // Writes best.h5, of an ensemble with this score on the validation split, where that is finite and
  // better than all before. A score equal to the best one so far does not replace it.
  void save_if_best(const TrainingState& state, double score);

 private:
  bool root() const { return context_.world.rank() == 0; }
  std::int64_t choose() const;
  void require_settings_of_the_folder() const;
  void read_best_score();
  Checkpoint checkpoint(const TrainingState& state) const;

  const Experiment& experiment_;
  const TrainingSetup& setup_;
  const RunFolder& run_;
  const RunClaim* const claim_;
  JobContext& context_;
  double best_score_ = -std::numeric_limits<double>::infinity();  // of best.h5; on rank 0
};

}  // namespace tpudist
