#pragma once

#include <string>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// What `train --dry-run` prints: data, units, memory, the cost of evaluations, and the share of each
// of `ranks` ranks in the work of the first steps, without training. Builds the plans of these steps
// and times a small one; not collective: runs on the threads of this rank alone. Throws what opening
// and planning the data throws.
std::string describe_work(const Experiment& experiment, int ranks, JobContext& context);

}  // namespace tpudist
