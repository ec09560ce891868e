#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: layer_norm, affine, eps}: torch.nn.LayerNorm over the channels of each row.
std::shared_ptr<const Layer> read_layer_norm(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
