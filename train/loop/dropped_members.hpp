#pragma once

#include <vector>

#include "train/experiment/experiment.hpp"
#include "train/loop/train_outcome.hpp"
#include "train/loop/training_state.hpp"

namespace tpudist {

// Members that no longer train, by ascending numbers: those whose loss or gradient was not finite,
// and those that stopped early.
std::vector<int> failed_members(const EnsembleConfig& ensemble, const TrainingState& state);
std::vector<EarlyStopped> stopped_members(const EnsembleConfig& ensemble,
                                          const TrainingState& state);

}  // namespace tpudist
