#pragma once

#include <string>
#include <vector>

#include "dist/health/job_context.hpp"
#include "records/trained_graphs.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// `train.init_from`: overwrites the initial parameters of all members by those of a run's last
// checkpoint, averaged where it has averages, or of a safetensors file. A member takes those of
// the run's member of its number, or of its only one. Sets `init_hash` of the state. Returns lines
// that say which tensors were taken, and on which graphs what members take was trained, as far as
// that is known. Warns where the run's member knows a model family of the graphs that the one here
// is scored on. Throws ConfigError where the path is neither, where the run has no such member or it
// failed, where the run's member was trained on a graph that the one here is scored on, and where
// members would be trained alike; DataError for tensors that are missing or have another shape,
// unless they match `train.init_fresh`.
struct InitialWeights {
  std::vector<std::string> lines;
  TrainedGraphs graphs;
};
InitialWeights take_initial_weights(const TrainingSetup& setup, TrainingState& state,
                                    JobContext& context);

// Throws ConfigError where a resumed run began from other weights than now lie at `train.init_from`.
// Nothing is said where there are none any more, or a version before this one began the run.
void require_same_source(const Experiment& experiment, const TrainingState& state);

// Sets the state before the first step: the weights of the seeds or of `train.init_from`, whose
// lines rank 0 logs, and the statistics of the encoder. Returns the graphs of those weights.
// Collective.
TrainedGraphs begin_anew(const TrainingSetup& setup, TrainingState& state, JobContext& context);

}  // namespace tpudist
