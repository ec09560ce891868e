#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "results/scores/out_of_fold.hpp"
#include "train/scoring/evaluation.hpp"

namespace tpudist {

// A member that took no step after step `step`, because `train.early_stop.patience` evaluations in
// a row were not better than that of `best_step`. The best score is optimistic: it is the largest
// of several scores on the same graphs.
struct EarlyStopped {
  int member = 0;  // number
  std::int64_t step = 0, best_step = 0;
  double best_score = 0;
};

// The result of a training. Plain data.
struct TrainOutcome {
  std::filesystem::path folder;  // of the run; on rank 0 the new path if the folder was moved
  bool has_validation = true;    // graphs in the validation split
  bool stopped = false;          // before all was trained and scored; a checkpoint was written
  // Whether the run stopped because of `train.time_limit` or the end of the Slurm job.
  bool out_of_time = false;
  // Numbers of the members that were dropped because their loss or gradient was not finite.
  std::vector<int> failed;
  std::vector<EarlyStopped> stopped_early;
  std::int64_t steps = 0;    // done
  double train_seconds = 0;  // of steps only, without evaluations and set-up; over all resumptions
  double wait_seconds = 0;   // part of train_seconds: waiting for the loader
  std::uint64_t device_bytes = 0;  // most memory on this rank's GPU, without CUDA's and NCCL's own
  std::uint64_t parameter_hash = 0;  // the same on all ranks
  // Hash of the averaged weights with `train.average`; the same on all ranks.
  std::optional<std::uint64_t> average_hash;
  // The evaluation after the last step (`train.last_evaluation`), if there are graphs.
  std::optional<Evaluation> evaluation;
  // Scores of the members that hold out a fold, with `predictions.rows`; on rank 0.
  std::vector<OutOfFoldScore> out_of_fold;
};

}  // namespace tpudist
