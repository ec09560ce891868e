#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "ensemble/out_of_fold.hpp"
#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/evaluation.hpp"

namespace tpudist {

// A member that took no step behind step `step`, because `train.early_stop.patience` evaluations on
// the way had brought no better score than the best one of `best_step`. That one was chosen among
// several on the graphs that it was measured on: it is optimistic.
struct EarlyStopped {
  int member = 0;  // number
  std::int64_t step = 0, best_step = 0;
  double best_score = 0;
};

struct TrainOutcome {
  bool stopped = false;  // before the last step; a checkpoint was written
  // Where it stopped: whether for `train.time_limit`, or the end of the Slurm job, and not on request.
  bool out_of_time = false;
  // Numbers of the members that were left out, because their loss or gradient was not finite.
  std::vector<int> failed;
  std::vector<EarlyStopped> stopped_early;
  std::int64_t steps = 0;    // done
  double train_seconds = 0;  // in steps alone: no evaluation, no set-up; over all resumptions
  double wait_seconds = 0;   // of these, waiting for the loader
  std::uint64_t parameter_hash = 0;  // the same on all ranks
  // Of the weights that are scored, where `train.average` keeps averages; the same on all ranks.
  std::optional<std::uint64_t> average_hash;
  // Behind the last step, as `train.last_evaluation` says, if there are graphs.
  std::optional<Evaluation> evaluation;
  // Of the members that hold out a fold, where `predictions.rows` asks for it; on rank 0.
  std::vector<OutOfFoldScore> out_of_fold;
};

// Trains the experiment's ensemble to its last step, or until no member trains any more.
// Collective. Writes into the folder `run`, locked by rank 0, once data and network are there; the
// last evaluation goes to its scores.json. With `resume` it goes on from the newest checkpoint that
// is whole (from step 0 when there is none); the result has the same bits as that of a run that
// never stopped. `stop_requested` is asked at every step boundary on every rank; when any says so,
// all write a checkpoint and return; so they do when one of them has no time left for another step
// (`train.time_limit`). While it trains, the ranks tell each other in the folder where they are
// (Watchdog). Throws ConfigError when the folder holds a run and `resume` is
// false, or something else, or when the checkpoint is of another experiment; Error when another
// process trains there, and when every member has failed.
TrainOutcome train(const Experiment& experiment, const std::filesystem::path& run, bool resume,
                   JobContext& context, const std::function<bool()>& stop_requested);

}  // namespace tpudist
