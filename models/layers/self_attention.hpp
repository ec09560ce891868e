#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: self_attention, width, heads, others, directions, max_nodes, bias, activation}: softmax
// attention of each node to all nodes of its configuration (Vaswani et al., "Attention is all you
// need", 2017), in which neighbours count more, as in a course paper from Harvard:
//
//       y_i = act(sum over j of a_ij v_j),  a_ij = w_ij exp(q_i . k_j / sqrt(width)) / the sum over j
//
// with q, k, v = W x (+ b), each with its own. w is `others`, and each edge between the two along
// `directions` adds 1 - others. Each of `heads` has `width` channels; they stand side by side.
std::shared_ptr<const Layer> read_self_attention(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
