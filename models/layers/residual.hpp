#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: residual, blocks: [...], skip: identity | project | concat}: y = x + f(x) where f is the
// chain of blocks; with project y = x W + f(x), with concat y = [f(x) | x]. The identity needs the
// same number of channels before and after the blocks.
std::shared_ptr<const Layer> read_residual(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
