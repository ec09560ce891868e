#pragma once

#include <cstdint>

#include "models/network/network_config.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// Returns the largest number of floats that one member holds in states and gradients during a
// training step on `plan`. These are the states after all layers, which are kept for the backward
// pass, and as many gradients. With `recompute` (train.recompute) fewer states are kept: those
// between the blocks, or of every other layer of a stack of plain SAGE layers. The states inside
// the largest block are then held for a time.
double training_floats(const NetworkConfig& config, const FeatureSchema& schema, const Plan& plan,
                       bool recompute);

}  // namespace tpudist
