#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: activation, kind}
std::shared_ptr<const Layer> read_activation(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
