#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// Reads one entry of `blocks:`, {layer: NAME, ...}, and moves `place` behind the layer. Mistakes are
// noted in the node; the layer that is then returned can be described but not run.
std::shared_ptr<const Layer> read_layer(ConfigNode block, LayerContext& place);

// Reads a list of blocks, each of which may say `repeat`. `list` is what prefixes begin with.
std::vector<std::shared_ptr<const Layer>> read_layers(std::vector<ConfigNode> blocks,
                                                      const std::string& list, LayerContext& place);

// The names that `layer:` takes, in the order of the registry.
std::vector<std::string> layer_names();

}  // namespace tpudist
