#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Which values of different blocks refuse each other. `experiment` is what the blocks below `root`
// were read into; a mistake is kept in the document at the key to be changed.
void refuse_contradictions(ConfigNode root, const Experiment& experiment);

}  // namespace tpudist
