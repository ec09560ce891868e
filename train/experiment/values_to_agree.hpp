#pragma once

#include <vector>

#include "dist/agreement.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// What all ranks of a job must have in common of an experiment: every resolved value by its key. Not
// the folder of the shards and the fold file, which may lie elsewhere on each node: what is in them is
// compared when they have been read.
std::vector<AgreedValue> values_to_agree(const Experiment& experiment);

}  // namespace tpudist
