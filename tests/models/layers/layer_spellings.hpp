#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace tpudist::test {

// One way to write a layer in YAML. Each layer has six input channels.
struct LayerSpelling {
  std::string layer;  // as in layer_names()
  std::string name;   // of the test, in letters, digits and underscores
  std::string yaml;   // one entry of `blocks:`
};

// For GoogleTest, in the names of tests that fail.
inline void PrintTo(const LayerSpelling& spelling, std::ostream* out) {
  *out << spelling.yaml;
}

// The layers whose properties are tested: at least one spelling of every registered layer. A new
// layer needs a few more lines here.
inline const std::vector<LayerSpelling>& layer_spellings() {
  static const std::string both = "directions: [consumer_to_producer, producer_to_consumer]";
  static const std::string tanh = "activation: gelu_tanh";
  static const std::vector<LayerSpelling> spellings = {
      {"sage", "sage_mean", "{layer: sage, width: 5, " + tanh + "}"},
      {"sage", "sage_sum_of_both", "{layer: sage, width: 5, aggregation: sum, " + both + "}"},
      {"sage", "sage_max", "{layer: sage, width: 5, aggregation: max, " + both + "}"},
      {"sage", "sage_concat", "{layer: sage, width: 4, join: concat, " + both + "}"},
      {"sage", "sage_shared", "{layer: sage, width: 5, join: shared, " + tanh + ", " + both + "}"},
      {"sage", "sage_normalised", "{layer: sage, width: 5, normalise: true, " + tanh + "}"},
      {"sage", "sage_residual", "{layer: sage, width: 6, residual: true, activation: silu}"},
      {"sage", "sage_alone", "{layer: sage, width: 5, directions: [], " + tanh + "}"},
      {"sage", "sage_config_edges",
       "{layer: sage, width: 5, directions: [config_consumer_to_producer, producer_to_consumer, "
       "config_producer_to_consumer], " +
           tanh + "}"},
      {"gcn", "gcn", "{layer: gcn, width: 5, " + tanh + "}"},
      {"gcn", "gcn_backwards",
       "{layer: gcn, width: 5, directions: [producer_to_consumer], activation: none}"},
      {"gcn", "gcn_both", "{layer: gcn, width: 5, " + both + "}"},
      // A node without neighbours has only the skip.
      {"gcn", "gcn_without_loops",
       "{layer: residual, blocks: [{layer: gcn, width: 6, self_loops: false, " + both + "}]}"},
      {"gcn", "gcn_right", "{layer: gcn, width: 4, normalise: right, " + tanh + ", " + both + "}"},
      {"gcn", "gcn_right_sum", "{layer: gcn, width: 4, normalise: right_sum, " + both + "}"},
      {"gat", "gat", "{layer: gat, width: 3, heads: 2, " + tanh + "}"},
      {"gat", "gat_mean", "{layer: gat, width: 5, heads: 3, join: mean, " + both + "}"},
      {"gatv2", "gatv2", "{layer: gatv2, width: 3, heads: 2, " + tanh + "}"},
      {"gatv2", "gatv2_mean",
       "{layer: gatv2, width: 5, heads: 3, join: mean, negative_slope: 0.1, " + both + "}"},
      {"gin", "gin", "{layer: gin, width: 5, hidden: 4, " + tanh + "}"},
      {"gin", "gin_learned_eps",
       "{layer: gin, width: 5, hidden: 7, eps: 0.3, train_eps: true, activation: silu, " + both +
           "}"},
      {"gine", "gine", "{layer: gine, width: 5, hidden: 4, train_eps: true, " + both + "}"},
      // In a maximum of products, rounding decides between equal neighbours; there are none here.
      {"pna", "pna", "{layer: pna, width: 5, directions: [producer_to_consumer], " + tanh + "}"},
      {"pna", "pna_both", "{layer: pna, width: 4, average_log_degree: 0.7, " + both + "}"},
      {"virtual_node", "virtual_node", "{layer: virtual_node, " + tanh + "}"},
      {"virtual_node", "virtual_node_mean",
       "{layer: virtual_node, hidden: 4, aggregation: mean, activation: none}"},
      {"edge_mlp", "edge_mlp", "{layer: edge_mlp, width: 3, config_width: 2}"},
      {"edge_mlp", "edge_mlp_of_columns",
       "{layer: edge_mlp, width: 2, hidden: 5, config_width: 3, config_hidden: 4, config_columns: "
       "[0, 7, 3], " +
           both + "}"},
      {"parallel", "parallel",
       "{layer: parallel, branches: [{blocks: [{layer: sage, width: 4}, {layer: dropout, rate: "
       "0.2}, "
       "{layer: graph_norm}]}, {blocks: []}, {blocks: [{layer: join_config, width: 3}]}]}"},
      {"self_attention", "self_attention", "{layer: self_attention, width: 3, heads: 2}"},
      {"self_attention", "self_attention_alike",
       "{layer: self_attention, width: 5, others: 1, bias: false, " + tanh + "}"},
      {"linear_attention", "linear_attention", "{layer: linear_attention, width: 3, heads: 2}"},
      {"linear_attention", "linear_attention_alone",
       "{layer: linear_attention, width: 5, bias: false, " + tanh + "}"},
      {"linear", "linear", "{layer: linear, width: 7}"},
      {"linear", "linear_without_bias", "{layer: linear, width: 5, bias: false, " + tanh + "}"},
      {"linear", "linear_xavier", "{layer: linear, width: 5, initialise: xavier, bias_value: 0.1}"},
      {"activation", "relu", "{layer: activation, kind: relu}"},
      {"activation", "leaky_relu", "{layer: activation, kind: leaky_relu}"},
      {"activation", "leaky_relu_02", "{layer: activation, kind: leaky_relu_0.2}"},
      {"activation", "gelu", "{layer: activation, kind: gelu}"},
      {"activation", "gelu_tanh", "{layer: activation, kind: gelu_tanh}"},
      {"activation", "elu", "{layer: activation, kind: elu}"},
      {"activation", "silu", "{layer: activation, kind: silu}"},
      {"activation", "no_activation", "{layer: activation, kind: none}"},
      {"prelu", "prelu", "{layer: prelu}"},
      {"prelu", "prelu_per_channel", "{layer: prelu, per_channel: true}"},
      {"residual", "residual",
       "{layer: residual, blocks: [{layer: instance_norm}, {layer: sage, width: 6, " + tanh +
           "}, {layer: dropout, rate: 0.2}, {layer: channel_attention, reduction: 2}]}"},
      {"residual", "residual_projected",
       "{layer: residual, skip: project, blocks: [{layer: sage, width: 5, " + both +
           "}, {layer: linear, width: 4, activation: silu}]}"},
      {"residual", "residual_concatenated",
       "{layer: residual, skip: concat, blocks: [{layer: layer_norm}, {layer: sage, width: 4}]}"},
      {"residual", "residual_within_residual",
       "{layer: residual, skip: project, blocks: [{layer: residual, skip: identity, blocks: "
       "[{layer: graph_norm}, {layer: join_config, width: 6}]}, {layer: config_attention}]}"},
      {"layer_norm", "layer_norm", "{layer: layer_norm}"},
      {"layer_norm", "layer_norm_plain", "{layer: layer_norm, affine: false, eps: 1e-3}"},
      {"l2_norm", "l2_norm", "{layer: l2_norm}"},
      {"instance_norm", "instance_norm", "{layer: instance_norm}"},
      {"instance_norm", "instance_norm_affine", "{layer: instance_norm, affine: true, eps: 1e-3}"},
      {"graph_norm", "graph_norm", "{layer: graph_norm}"},
      {"channel_attention", "channel_attention", "{layer: channel_attention, reduction: 2}"},
      {"channel_attention", "channel_attention_narrow", "{layer: channel_attention}"},
      {"config_attention", "config_attention", "{layer: config_attention}"},
      {"config_attention", "config_attention_cold", "{layer: config_attention, temperature: 0.05}"},
      {"dropout", "dropout", "{layer: dropout, rate: 0.5}"},
      {"dropout", "dropout_of_nodes", "{layer: dropout, rate: 0.4, drop: nodes}"},
      {"dropout", "dropout_element", "{layer: dropout, rate: 0.4, scope: element}"},
      {"dropout", "dropout_element_within_residual",
       "{layer: residual, blocks: [{layer: dropout, rate: 0.3, drop: nodes, scope: element}]}"},
      {"join_config", "join_config", "{layer: join_config, width: 5}"},
      {"join_config", "join_config_plain", "{layer: join_config}"},
  };
  return spellings;
}

}  // namespace tpudist::test
