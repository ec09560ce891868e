#pragma once

#include <string>
#include <vector>

#include "train/units/training_setup.hpp"

namespace tpudist {

// A table of the network's layers, a line for each: its parameters in one member, the state behind it
// as rows x channels in the plan that a unit of these plans takes, and for the encoder and each layer
// that takes plan layers the sharing forecast, e.g. "rows 9 % -> 48 %": the rows of the refined plan
// before and behind it, against those of the dense plan.
std::vector<std::string> layer_lines(const TrainingSetup& setup, const PlanComparison& plans);

}  // namespace tpudist
