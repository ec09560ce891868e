#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: config_attention, temperature}: the cross-configuration attention of the 1st place of
// "Fast or Slow?": [x | x * softmax over the configurations of (x / T)] with a learned T, initially
// `temperature`. It doubles the number of channels. Only for whole slates: it refuses config_chunk,
// and scoring needs evaluate.slate.
std::shared_ptr<const Layer> read_config_attention(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
