#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// Each row [M, rows, C] divided by its L2 norm, or by 1e-12 where that is larger
// (torch.nn.functional.normalize).
at::Tensor normalise_l2(const at::Tensor& x, const Backend& backend);

// {layer: l2_norm}: the same as a layer.
std::shared_ptr<const Layer> read_l2_norm(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
