#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: virtual_node, hidden, aggregation: sum | mean | max, activation}: a node that all nodes of
// a configuration send to and receive from (Gilmer et al., "Neural message passing for quantum
// chemistry", 2017), without a state of its own from layer to layer:
//
//       y_i = x_i + act(W2 relu(W1 (aggregation over all nodes of x) + b1) + b2)
std::shared_ptr<const Layer> read_virtual_node(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
