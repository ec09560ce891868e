#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: gcn, width, direction, activation}: GCN (Kipf and Welling, "Semi-supervised classification
// with graph convolutional networks", 2017), PyTorch Geometric's GCNConv with self-loops:
//
//     y_i = act(sum over i and its neighbours j of x_j W / sqrt(d_i d_j) + b)
//
// where d_i is 1 + the number of neighbours of i along `direction`; parallel edges count each. It
// takes two plan layers. Behind the first one a row knows its number of neighbours, which rows of
// equal states need not share; the second one adds up. The plan holds multiplicities only, and the
// divisors are factors of the rows.
std::shared_ptr<const Layer> read_gcn(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
