#pragma once

#include <filesystem>
#include <functional>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/train_outcome.hpp"

namespace tpudist {

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
