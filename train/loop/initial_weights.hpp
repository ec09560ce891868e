#pragma once

#include <string>
#include <vector>

#include "dist/health/job_context.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// `train.init_from`: overwrites the initial parameters of all members by those of a run's last
// checkpoint, averaged where it has averages, or of a safetensors file. A member takes those of
// the run's member of its number, or of its only one. Sets `init_hash` and `trained_on` of the state.
// Returns lines that say which tensors were taken. Throws ConfigError where the path is neither,
// where the run has no such member or it failed, where the run's member was trained on a graph that
// the one here is scored on, and where members would be trained alike; DataError for tensors that
// are missing or have another shape, unless they match `train.init_fresh`.
std::vector<std::string> take_initial_weights(const TrainingSetup& setup, TrainingState& state,
                                              JobContext& context);

// Sets the state before the first step: the weights of the seeds or of `train.init_from`, whose
// lines rank 0 logs, and the statistics of the encoder. Collective.
void begin_anew(const TrainingSetup& setup, TrainingState& state, JobContext& context);

}  // namespace tpudist
