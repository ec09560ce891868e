#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "dist/health/job_context.hpp"
#include "results/scores/member_scores.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/member_stops.hpp"
#include "train/scoring/evaluation.hpp"

namespace tpudist {

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
  std::vector<MemberScores::OutOfFold> out_of_fold;
};

// Trains the experiment's ensemble to its last step, or until no member trains any more.
// Collective. Writes into the folder `run`, which rank 0 locks after data and network have been
// opened; the last evaluation goes to scores.json. With `resume` continues from the newest complete
// checkpoint, or from step 0 without one. The result has the bits of a run that never stopped.
//
// Calls `stop_requested` on every rank between steps, and after the last step before each few
// graphs to score. If it returns true on any rank, or a rank has no time left (`train.time_limit`),
// all ranks write a checkpoint and return. During training, ranks exchange their status in the
// folder (Watchdog).
//
// Throws ConfigError when the folder holds a run and `resume` is false, when it holds other files,
// or when the checkpoint belongs to another experiment; Error when another process trains there,
// when every member has failed, and when only scoring was left and the time is over.
TrainOutcome train(const Experiment& experiment, const std::filesystem::path& run, bool resume,
                   JobContext& context, const std::function<bool()>& stop_requested);

}  // namespace tpudist
