#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/state/run_folder.hpp"

namespace tpudist {

struct TrainOutcome {
  bool stopped = false;      // on request, before the last step; a checkpoint was written
  std::int64_t steps = 0;    // done
  double train_seconds = 0;  // in steps alone: no evaluation, no set-up; over all resumptions
  double wait_seconds = 0;   // of these, waiting for the loader
  std::uint64_t parameter_hash = 0;  // the same on all ranks
  // Behind the last step, as `train.last_evaluation` says, if there are graphs.
  std::optional<Evaluation> evaluation;
};

// Trains the experiment's ensemble to its last step. Collective. With `resume` it goes on from the
// newest readable checkpoint of `run` (from step 0 when there is none); the result has the same
// bits as that of a run that never stopped. `stop_requested` is asked at every step boundary on
// every rank; when any says so, all write a checkpoint and return. Throws ConfigError when the
// checkpoint is of another experiment.
TrainOutcome train(const Experiment& experiment, const RunFolder& run, bool resume,
                   JobContext& context, const std::function<bool()>& stop_requested);

}  // namespace tpudist
