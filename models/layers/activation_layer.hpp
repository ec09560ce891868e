#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: activation, kind}
std::shared_ptr<const Layer> read_activation(ConfigNode block, const LayerContext& place);
// {layer: prelu, per_channel}: PReLU (He et al., "Delving deep into rectifiers", 2015),
// torch.nn.PReLU: max(x, 0) + a min(x, 0) with one learned slope a, or one for each channel.
std::shared_ptr<const Layer> read_prelu(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
