#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: gcn, width, directions, normalise: symmetric | right, self_loops, activation}: GCN (Kipf
// and Welling, "Semi-supervised classification with graph convolutional networks", 2017), PyTorch
// Geometric's GCNConv. Each parallel edge counts. A is the adjacency matrix of the edges along all
// `directions`, plus the identity with `self_loops`; D has its row sums.
//
//       symmetric:  y = act(D^-1/2 A D^-1/2 x W + b)
//       right:      y = act([D^-1 A x W + b for each direction with its own A, D, W and b])
//
// TpuGraphs' ResModel has `symmetric` along both directions. `right` concatenates the directions,
// with `width` channels for each. Degrees are those of the graph that the plan is made of, so of
// the reduced graph where graphs are reduced.
// `symmetric` uses two plan layers. After the first a row knows its number of neighbours, which
// rows of equal states need not share; the second computes the sum. The plan contains only
// multiplicities; the divisors are factors of the rows.
std::shared_ptr<const Layer> read_gcn(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
