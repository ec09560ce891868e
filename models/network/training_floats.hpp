#pragma once

#include <cstdint>

#include "models/network/network_config.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// Returns how many numbers one member holds at most in the states and gradients of a training step on
// `plan`: the states behind all layers, kept for the backward pass, and as many gradients. With
// `recompute` (train.recompute) only the states between the blocks are kept, or between every other
// layer of a stack of plain SAGE layers, and what stands inside the largest block comes and goes.
// `config_features`: kLayoutConfigFeatures or kTileConfigFeatures.
double training_floats(const NetworkConfig& config, std::int64_t config_features, const Plan& plan,
                       bool recompute);

}  // namespace tpudist
