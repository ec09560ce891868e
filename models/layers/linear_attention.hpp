#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: linear_attention, width, heads, bias, activation}: attention between all nodes of a
// configuration without a softmax (Katharopoulos et al., "Transformers are RNNs", 2020), whose time
// grows linearly with them:
//
//       y_i = act(f(q_i)^T sum over j of f(k_j) v_j^T / (f(q_i)^T sum over j of f(k_j) + 1e-6))
//       f(x) = elu(x) + 1,   q, k, v = W x (+ b), each with its own
//
// Each of `heads` has `width` channels; they stand side by side.
std::shared_ptr<const Layer> read_linear_attention(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
