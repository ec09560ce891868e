#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"
#include "models/layers/layer_config.hpp"

namespace tpudist {

// Reads one entry of `blocks:`, {layer: NAME, ...}, and advances `position` past the layer. Records
// mistakes in the node; the returned layer can then be described but not run.
std::shared_ptr<const Layer> read_layer(ConfigNode block, LayerPosition& position);

// Reads a list of blocks, each with an optional `repeat`. `list`: beginning of the prefixes.
Layers read_layers(std::vector<ConfigNode> blocks, const std::string& list,
                   LayerPosition& position);

// The allowed names for `layer:`, in the order of the registry.
std::vector<std::string> layer_names();

// The layers of the registry, each read from its block, {layer: NAME, ...}. Mistakes are recorded
// in the block.

// {layer: gcn, width, directions, normalise: symmetric | right, self_loops, activation}: GCN (Kipf
// and Welling, "Semi-supervised classification with graph convolutional networks", 2017), PyTorch
// Geometric's GCNConv. Each parallel edge counts. A is the adjacency matrix of the edges along all
// `directions`, plus the identity with `self_loops`; D has its row sums.
//
//       symmetric:  y = act(D^-1/2 A D^-1/2 x W + b)
//       right:      y = act([D^-1 A x W + b for each direction with its own A, D, W and b])
//
// TpuGraphs' ResModel has `symmetric` along both directions. `right` concatenates the directions,
// with `width` channels for each. Degrees are those of the plan's graph: of the reduced graph if
// graphs are reduced.
// `symmetric` uses two plan layers. After the first a row knows its number of neighbours, which
// rows of equal states need not share; the second computes the sum. The plan contains only
// multiplicities; the divisors are factors of the rows.
std::shared_ptr<const Layer> read_gcn(ConfigNode block, const LayerPosition& position);

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
// several directions share one softmax. An edge from a node to itself, which no HLO module has, is
// a neighbour like others here; PyTorch Geometric removes such edges first.
std::shared_ptr<const Layer> read_gat(ConfigNode block, const LayerPosition& position);

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
std::shared_ptr<const Layer> read_gin(ConfigNode block, const LayerPosition& position);

// {layer: pna, width, directions, average_log_degree, activation}: PNA (Corso et al., "Principal
// neighbourhood aggregation for graph nets", 2020), PyTorch Geometric's PNAConv with one tower, the
// aggregators mean, max, min and std, and the scalers identity, amplification and attenuation:
//
//       h_ij = P [x_i, x_j] + p for each neighbour j
//       y_i = act(L (Q [x_i, s A for each scaler s and aggregation A of h_ij] + q) + l)
//
// Scalers are 1, g and 1 / g, where g = log(1 + number of neighbours) / average_log_degree. Each
// direction has its own P, p and aggregations; all go into Q side by side. Where a row has no
// neighbours, its aggregations are 0. P is linear, so that x_i only shifts the mean, the maximum
// and the minimum of what neighbours add, which rows share.
std::shared_ptr<const Layer> read_pna(ConfigNode block, const LayerPosition& position);

// {layer: virtual_node, hidden, aggregation: sum | mean | max, activation}: a node that all nodes
// of a configuration send to and receive from (Gilmer et al., "Neural message passing for quantum
// chemistry", 2017), without a state of its own from layer to layer:
//
//       y_i = x_i + act(W2 relu(W1 (aggregation over all nodes of x) + b1) + b2)
std::shared_ptr<const Layer> read_virtual_node(ConfigNode block, const LayerPosition& position);

// {layer: edge_mlp, width, hidden, config_width, config_hidden, config_columns, directions}: the
// network of the 4th place of "Fast or Slow?", which passes no messages. For each edge from a
// configurable node i along `directions` to a neighbour j
//
//       f_ij = V relu(U [x_i | x_j])                  `width` channels through `hidden`
//       g = mean of f over the edges of the configuration
//       c_i = V' relu(U' [s_i | g])                   `config_width` through `config_hidden`
//
// with s_i the chosen columns of the node's configuration. A row becomes
//
//       [sum over j of f_ij c_i^T | sum over j of c_i / E]
//
// with E the number of the configuration's edges, 0 if the node is not configurable. So a sum over
// nodes gives the products F^T C and the mean of c of the source. Parallel edges count.
std::shared_ptr<const Layer> read_edge_mlp(ConfigNode block, const LayerPosition& position);

// {layer: self_attention, width, heads, others, directions, max_nodes, bias, activation}: softmax
// attention of each node to all nodes of its configuration (Vaswani et al., "Attention is all you
// need", 2017), in which neighbours count more, as in a course paper from Harvard:
//
//       y_i = act(sum over j of a_ij v_j),  a_ij = w_ij exp(q_i . k_j / sqrt(width)) / sum over j
//
// with q, k, v = W x (+ b), each with its own. w_ij is `others`, plus 1 - others for each edge
// between i and j along `directions`. Each of `heads` has `width` channels, side by side.
//
// {layer: linear_attention, width, heads, bias, activation}: attention between all nodes of a
// configuration without a softmax (Katharopoulos et al., "Transformers are RNNs", 2020), in a time
// that grows linearly with the nodes:
//
//       y_i = act(f(q_i)^T sum over j of f(k_j) v_j^T / (f(q_i)^T sum over j of f(k_j) + 1e-6))
//       f(x) = elu(x) + 1,   q, k, v = W x (+ b), each with its own
//
// Each of `heads` has `width` channels; they stand side by side.
std::shared_ptr<const Layer> read_attention(ConfigNode block, const LayerPosition& position);

// {layer: linear, width, bias, initialise: fan_in | xavier, bias_value, activation}
std::shared_ptr<const Layer> read_linear(ConfigNode block, const LayerPosition& position);

// {layer: activation, kind}
std::shared_ptr<const Layer> read_activation(ConfigNode block, const LayerPosition& position);
// {layer: prelu, per_channel}: PReLU (He et al., "Delving deep into rectifiers", 2015),
// torch.nn.PReLU: max(x, 0) + a min(x, 0) with one learned slope a, or one for each channel.
std::shared_ptr<const Layer> read_prelu(ConfigNode block, const LayerPosition& position);

// {layer: residual, blocks: [...], skip: identity | project | concat}: y = x + f(x) where f is the
// chain of blocks; with project y = x W + f(x), with concat y = [f(x) | x]. The identity needs the
// same number of channels before and after the blocks.
std::shared_ptr<const Layer> read_residual(ConfigNode block, const LayerPosition& position);

// {layer: parallel, branches: [{blocks: [...]}, {blocks: [...]}]}: y = [f(x) | g(x) | ...], the
// outputs of the chains of blocks for the same rows, side by side.
std::shared_ptr<const Layer> read_parallel(ConfigNode block, const LayerPosition& position);

// {layer: layer_norm, affine, eps}: torch.nn.LayerNorm over the channels of each row.
std::shared_ptr<const Layer> read_layer_norm(ConfigNode block, const LayerPosition& position);

// {layer: instance_norm, affine, eps}: normalises every channel over the nodes of a configuration
// (PyTorch Geometric's InstanceNorm; Ulyanov et al. 2016). A graph of one node gives 0.
std::shared_ptr<const Layer> read_instance_norm(ConfigNode block, const LayerPosition& position);

// {layer: graph_norm, eps}: the same, but subtracting a learned share of the mean, with weight and
// bias (PyTorch Geometric's GraphNorm; Cai et al. 2021).
std::shared_ptr<const Layer> read_graph_norm(ConfigNode block, const LayerPosition& position);

// {layer: channel_attention, reduction}: y = x * sigmoid(W2 relu(W1 x + b1) + b2) for each row,
// with C / reduction channels in between. It is the gate of squeeze-and-excitation (Hu et al. 2018)
// without its pooling, as used by the 1st place of "Fast or Slow?".
std::shared_ptr<const Layer> read_channel_attention(ConfigNode block,
                                                    const LayerPosition& position);

// {layer: config_attention, temperature}: the cross-configuration attention of the 1st place of
// "Fast or Slow?": [x | x * softmax over the configurations of (x / T)] with a learned T, initially
// `temperature`. It doubles the number of channels. Only for whole slates: it refuses config_chunk,
// and scoring needs evaluate.slate.
std::shared_ptr<const Layer> read_config_attention(ConfigNode block, const LayerPosition& position);

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
std::shared_ptr<const Layer> read_dropout(ConfigNode block, const LayerPosition& position);

// {layer: join_config, width}: joins the configuration's state late, or once more: y = [x | state]
// W + b, or [x | state] with `width` 0. The state is the encoder's (EncoderConfig), also for nodes
// without one.
std::shared_ptr<const Layer> read_join_states(ConfigNode block, const LayerPosition& position);

// Each row [M, rows, C] divided by its L2 norm, or by 1e-12 where that is larger
// (torch.nn.functional.normalize).
at::Tensor normalise_l2(const at::Tensor& x, const Backend& backend);

// {layer: l2_norm}: the same as a layer.
std::shared_ptr<const Layer> read_l2_norm(ConfigNode block, const LayerPosition& position);

// The layer of a config from read_sage_config.
std::shared_ptr<const Layer> make_sage(const SageConfig& config, const LayerPosition& position);
std::shared_ptr<const Layer> read_sage(ConfigNode block, const LayerPosition& position);
// The config of a SAGE layer; null for other layers.
const SageConfig* sage_config_of(const Layer& layer);

}  // namespace tpudist
