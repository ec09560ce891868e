#pragma once

#include <string>

#include "train/experiment/experiment.hpp"

namespace tpudist {

// What `train --dry-run` prints: data, units, memory and the cost of each of `ranks` ranks over the
// first steps, without training. Builds one step's plans to measure them.
std::string describe_work(const Experiment& experiment, int ranks);

}  // namespace tpudist
