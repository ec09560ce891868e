#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"
#include "models/layers/sage_config.hpp"

namespace tpudist {

// The layer that read_sage_config reads.
std::shared_ptr<const Layer> make_sage(const SageConfig& config, const LayerContext& place);
std::shared_ptr<const Layer> read_sage(ConfigNode block, const LayerContext& place);
// The layer's config where it is a SAGE layer, otherwise null.
const SageConfig* sage_config_of(const Layer& layer);

}  // namespace tpudist
