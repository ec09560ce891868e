#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: instance_norm, affine, eps}: normalises every channel over the nodes of a configuration
// (PyTorch Geometric's InstanceNorm; Ulyanov et al. 2016). A graph of one node gives 0.
std::shared_ptr<const Layer> read_instance_norm(ConfigNode block, const LayerContext& place);

// {layer: graph_norm, eps}: the same, but subtracting a learned share of the mean, with weight and
// bias (PyTorch Geometric's GraphNorm; Cai et al. 2021).
std::shared_ptr<const Layer> read_graph_norm(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
