#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: join_config, width}: joins the configuration's state late, or once more: y = [x | state]
// W + b, or [x | state] with `width` 0. The state is the encoder's (EncoderConfig), also for nodes
// without one.
std::shared_ptr<const Layer> read_join_states(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
