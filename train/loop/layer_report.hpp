#pragma once

#include <string>
#include <vector>

#include "train/units/training_setup.hpp"

namespace tpudist {

// A table of the network's layers, one line each: its parameters in one member, and the state after
// it as rows x channels in the plan chosen for a unit. For the encoder and layers with plan layers
// also the sharing, e.g. "rows 9 % -> 48 %": rows of the refined plan before and after the layer,
// relative to the dense plan.
std::vector<std::string> layer_lines(const TrainingSetup& setup, const PlanComparison& plans);

}  // namespace tpudist
