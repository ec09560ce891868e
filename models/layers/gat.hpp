#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: gat, width, heads, join: concat | mean, directions, negative_slope, activation}: GAT
// (Velickovic et al., "Graph attention networks", 2018), PyTorch Geometric's GATConv:
//
//       y_i = act(sum over i and its neighbours j of a_ij W x_j + b)
//       a_ij = softmax over j of leaky_relu(u . W x_i + v . W x_j)
//
// and {layer: gatv2, ...} with the same keys: GATv2 (Brody et al., "How attentive are graph
// attention networks?", 2022), GATv2Conv:
//
//       a_ij = softmax over j of u . leaky_relu(R x_i + W x_j)
//
// Each of `heads` has its own weights and `width` channels; `join` puts the heads side by side, or
// takes their mean. A row itself counts once, and so does each parallel edge. Neighbours along
// several directions share one softmax. An edge from a node to itself, which no HLO module has, is a
// neighbour like others here; PyTorch Geometric removes such edges first.
std::shared_ptr<const Layer> read_gat(ConfigNode block, const LayerContext& place);
std::shared_ptr<const Layer> read_gatv2(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
