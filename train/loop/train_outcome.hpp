#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "results/scores/out_of_fold.hpp"
#include "train/scoring/evaluation.hpp"

namespace tpudist {

// A member that took no step after step `step`, because `train.early_stop.patience` evaluations in
// a row were not better than that of `best_step`. The best score is the largest of several on the
// same graphs, so it is optimistic.
struct EarlyStopped {
  int member = 0;  // number
  std::int64_t step = 0, best_step = 0;
  double best_score = 0;
};

// The result of a training. Plain data.
struct TrainOutcome {
  std::filesystem::path folder;  // of the run; on rank 0 where it is at the end, if it was moved
  bool has_validation = true;    // graphs in the validation split
  bool stopped = false;          // before all was trained and scored; a checkpoint was written
  // Whether it stopped for `train.time_limit` or the end of the Slurm job, and not on request.
  bool out_of_time = false;
  // Numbers of the members that were dropped because their loss or gradient was not finite.
  std::vector<int> failed;
  std::vector<EarlyStopped> stopped_early;
  std::int64_t steps = 0;    // done
  double train_seconds = 0;  // of steps only, without evaluations and set-up; over all resumptions
  double wait_seconds = 0;   // of these, waiting for the loader
  std::uint64_t device_bytes = 0;  // most memory of this rank's GPU, without that of CUDA and NCCL
  std::uint64_t parameter_hash = 0;  // the same on all ranks
  // Of the averaged weights with `train.average`; the same on all ranks.
  std::optional<std::uint64_t> average_hash;
  // After the last step, as `train.last_evaluation` says, if there are graphs.
  std::optional<Evaluation> evaluation;
  // Of the members that hold out a fold, with `predictions.rows`; on rank 0.
  std::vector<OutOfFoldScore> out_of_fold;
};

}  // namespace tpudist
