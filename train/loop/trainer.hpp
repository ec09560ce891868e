#pragma once

#include <filesystem>
#include <functional>

#include "dist/health/job_context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/train_outcome.hpp"

namespace tpudist {

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
