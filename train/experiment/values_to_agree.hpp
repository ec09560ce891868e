#pragma once

#include <vector>

#include "dist/agreement.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// The values of an experiment that must be equal on all ranks: every resolved value by its key. The
// folder of the shards and the fold file are excluded, since each node may have its own; their
// content is compared after it has been read.
std::vector<AgreedValue> values_to_agree(const Experiment& experiment);

}  // namespace tpudist
