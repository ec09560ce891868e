#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"
#include "models/layers/sage_config.hpp"

namespace tpudist {

// The layer of a config from read_sage_config.
std::shared_ptr<const Layer> make_sage(const SageConfig& config, const LayerContext& place);
std::shared_ptr<const Layer> read_sage(ConfigNode block, const LayerContext& place);
// The config of a SAGE layer; null for other layers.
const SageConfig* sage_config_of(const Layer& layer);

}  // namespace tpudist
