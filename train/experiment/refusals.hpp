#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Checks for values of different blocks that contradict each other. `experiment` was read from the
// blocks below `root`. A mistake is recorded in the document at the key to be changed.
void refuse_contradictions(ConfigNode root, const Experiment& experiment);

}  // namespace tpudist
