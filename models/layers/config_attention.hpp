#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: config_attention, temperature}: cross-configuration attention of the 1st place of "Fast or
// Slow?": [x | x * softmax over the configurations of (x / T)] with a learned T that starts at
// `temperature`, so that there are twice as many channels behind it. Whole slates only: it refuses
// config_chunk, and scoring needs evaluate.slate.
std::shared_ptr<const Layer> read_config_attention(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
