#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// Reads one entry of `blocks:`, {layer: NAME, ...}, and advances `place` past the layer. Mistakes
// are recorded in the node; the returned layer can then be described but not run.
std::shared_ptr<const Layer> read_layer(ConfigNode block, LayerContext& place);

// Reads a list of blocks, each with an optional `repeat`. `list`: beginning of the prefixes.
std::vector<std::shared_ptr<const Layer>> read_layers(std::vector<ConfigNode> blocks,
                                                      const std::string& list, LayerContext& place);

// The allowed names for `layer:`, in the order of the registry.
std::vector<std::string> layer_names();

}  // namespace tpudist
