#pragma once

#include <string>
#include <vector>

#include "dist/health/job_context.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// `train.init_from`: overwrites the initial parameters of all members by the weights of a run's
// last checkpoint (its averages, if it has them) or of a safetensors file. A member takes the
// weights of the run's member with the same number, or of the run's only member. Sets the state's
// `init_hash` and `trained_on`. Returns lines that name the taken tensors. Throws ConfigError when
// the path is neither, the run's member is missing or failed, that member was trained on a graph on
// which this member is scored, or members would be trained alike; DataError when a tensor is
// missing or has another shape, unless it matches `train.init_fresh`.
std::vector<std::string> take_initial_weights(const TrainingSetup& setup, TrainingState& state,
                                              JobContext& context);

// Sets the state before the first step: weights from the seeds or from `train.init_from` (rank 0
// logs which), and the statistics of the encoder. Collective.
void begin_anew(const TrainingSetup& setup, TrainingState& state, JobContext& context);

}  // namespace tpudist
