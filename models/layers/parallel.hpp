#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: parallel, branches: [{blocks: [...]}, {blocks: [...]}]}: y = [f(x) | g(x) | ...], what the
// chains of blocks make of the same rows, side by side.
std::shared_ptr<const Layer> read_parallel(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
