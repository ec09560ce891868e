#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: join_config, width}: joins the configuration's state late or once more: y = [x | state] W + b,
// where the state is what the encoder makes of it (EncoderConfig), that of a node without one
// included.
std::shared_ptr<const Layer> read_join_states(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
