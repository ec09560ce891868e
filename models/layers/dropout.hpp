#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: dropout, rate}: sets channels to 0 with probability `rate` in training
// and divides the others by 1 - rate. Rows of equal content lose the same channels, so that dense and
// refined plans train the same network.
std::shared_ptr<const Layer> read_dropout(ConfigNode block, const LayerPlace& place);

}  // namespace tpudist
