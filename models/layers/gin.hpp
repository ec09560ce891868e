#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: gin, width, hidden, directions, eps, train_eps, activation}: GIN (Xu et al., "How
// powerful are graph neural networks?", 2019), PyTorch Geometric's GINConv with an MLP of one
// hidden layer:
//
//       y = act(W2 relu(W1 ((1 + eps) x + sum of neighbours) + b1) + b2)
//
// Neighbours along several directions are added. `hidden` is the width of the MLP's hidden layer.
// `eps` is the initial value in the weight of the node's own state; it is trained only if
// `train_eps` is true.
// {layer: gine, ...} with the same keys: GINE (Hu et al., "Strategies for pre-training graph neural
// networks", 2020), GINEConv, whose edges have no features but their direction. e is a learned
// vector for each direction:
//
//       y = act(W2 relu(W1 ((1 + eps) x + sum over neighbours j of relu(x_j + e)) + b1) + b2)
std::shared_ptr<const Layer> read_gin(ConfigNode block, const LayerContext& place);
std::shared_ptr<const Layer> read_gine(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
