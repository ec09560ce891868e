#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: dropout, rate, drop: channels|nodes, scope: row|element}, in training only.
// - drop: channels sets each channel of a state to 0 with probability `rate` and divides the others
//   by 1 - rate (torch.nn.Dropout).
// - drop: nodes sets the whole state of a node to 0 with probability `rate`, and does not change
//   the others, like torch_geometric.utils.dropout_node, which does not scale. The node stays in
//   its graph, so it still counts in the means of its neighbours.
// - scope: row draws by the content of a row: equal rows have equal masks, so dense and refined
//   plans train the same network.
// - scope: element draws for every (node, configuration), as PyTorch does on a batch of graphs.
//   Training then uses dense plans. Equal configurations of a graph have equal masks.
std::shared_ptr<const Layer> read_dropout(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
