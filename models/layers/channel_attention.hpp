#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: channel_attention, reduction}: y = x * sigmoid(W2 relu(W1 x + b1) + b2) for each row,
// with C / reduction channels in between. It is the gate of squeeze-and-excitation (Hu et al. 2018)
// without its pooling, as used by the 1st place of "Fast or Slow?".
std::shared_ptr<const Layer> read_channel_attention(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
