#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: gcn, width, direction, activation}: GCN (Kipf and Welling, "Semi-supervised
// classification with graph convolutional networks", 2017), PyTorch Geometric's GCNConv with
// self-loops:
//
//       y_i = act(sum over i and its neighbours j of x_j W / sqrt(d_i d_j) + b)
//
// where d_i is 1 + the number of neighbours of i along `direction`; each parallel edge counts. It
// uses two plan layers. After the first a row knows its number of neighbours, which rows of equal
// states need not share; the second computes the sum. The plan contains only multiplicities; the
// divisors are factors of the rows.
std::shared_ptr<const Layer> read_gcn(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
