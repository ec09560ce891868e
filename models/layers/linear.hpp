#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: linear, width, bias, initialise: fan_in | xavier, bias_value, activation}
std::shared_ptr<const Layer> read_linear(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
