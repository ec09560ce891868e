#pragma once

#include <string>

#include "train/experiment/context.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// "12.3 GFLOP", "1.23 TFLOP".
std::string format_operations(double operations);

// What the evaluations and predictions of an experiment cost on `ranks` ranks like this one, as lines:
// rows, arithmetic, training steps (of `step_operations` each) and, on the CPU, time, from a small plan
// that is run. Not collective.
std::string evaluation_forecast(const TrainingSetup& setup, int ranks, double step_operations,
                                JobContext& context);

}  // namespace tpudist
