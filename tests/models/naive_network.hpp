#pragma once

#include <ATen/ATen.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/schema/feature_schema.hpp"
#include "models/network/network.hpp"
#include "tests/models/network_case.hpp"

namespace tpudist::test {

// The network written again in plain LibTorch with autograd, in double, on one copy of the graph
// for each configuration and with dense adjacency matrices.
class NaiveNetwork {
 public:
  NaiveNetwork(const Network& network, std::span<const float> member) : network_(network) {
    for (const ParameterEntry& entry : network.parameters().entries()) {
      const at::Tensor values =
          at::from_blob(const_cast<float*>(member.data()) + entry.offset, entry.shape, at::kFloat);
      parameters_[entry.name] = values.to(at::kDouble).clone().requires_grad_();
    }
  }

  // [configs of all slates]
  at::Tensor scores(std::span<const SlateCase> slates) const {
    std::vector<at::Tensor> scores;
    for (const SlateCase& slate : slates) {
      for (std::int64_t k = 0; k < slate.configs; ++k) scores.push_back(score(slate, k));
    }
    return at::stack(scores);
  }

  // d sum(score * weight) / d parameters, flat [P], padding zero.
  std::vector<double> gradient(std::span<const SlateCase> slates,
                               std::span<const double> weights) const {
    const at::Tensor value = scores(slates);
    at::Tensor loss = at::zeros({}, at::kDouble);
    for (std::int64_t k = 0; k < value.size(0); ++k) loss = loss + value[k] * weights[k];
    loss.backward();
    std::vector<double> flat(network_.parameters().length(), 0.0);
    for (const ParameterEntry& entry : network_.parameters().entries()) {
      const at::Tensor own = parameters_.at(entry.name).grad().contiguous();
      std::copy_n(own.const_data_ptr<double>(), entry.size(), flat.begin() + entry.offset);
    }
    return flat;
  }

 private:
  const at::Tensor& p(const std::string& name) const { return parameters_.at(name); }

  // [nodes, nodes] number of edges
  static at::Tensor adjacency(const SlateCase& slate, EdgeKind direction) {
    at::Tensor matrix = at::zeros({slate.nodes, slate.nodes}, at::kDouble);
    for (std::size_t e = 0; e < slate.edges.size(); e += 2) {
      const std::int64_t consumer = slate.edges[e], producer = slate.edges[e + 1];
      const bool to_producer = direction == EdgeKind::consumer_to_producer;
      matrix[to_producer ? producer : consumer][to_producer ? consumer : producer] += 1;
    }
    return matrix;
  }

  static at::Tensor aggregate(const SlateCase& slate, const LayerShape& mix, std::size_t set,
                              const at::Tensor& x) {
    const at::Tensor edges = adjacency(slate, mix.edge_kinds[set]);
    if (mix.aggregation == Aggregation::sum) return at::mm(edges, x);
    if (mix.aggregation == Aggregation::mean)
      return at::mm(edges / edges.sum(1, true).clamp_min(1), x);
    // Parallel edges are repeated: equal maxima share the gradient.
    std::vector<at::Tensor> rows;
    for (std::int64_t node = 0; node < slate.nodes; ++node) {
      const at::Tensor sources =
          at::arange(slate.nodes).repeat_interleave(edges[node].to(at::kLong));
      rows.push_back(sources.size(0) ? x.index_select(0, sources).amax(0)
                                     : at::zeros({x.size(1)}, at::kDouble));
    }
    return at::stack(rows);
  }

  at::Tensor config_columns(const SlateCase& slate, std::int64_t k) const {
    const std::int64_t width = slate.state_values.size() / slate.state_rows;
    const at::Tensor table = at::from_blob(const_cast<float*>(slate.state_values.data()),
                                           {slate.state_rows, width}, at::kFloat)
                                 .to(at::kDouble);
    at::Tensor columns = at::zeros({slate.nodes, width}, at::kDouble);
    const std::int64_t config_nodes = slate.config_nodes.size();
    for (std::int64_t j = 0; j < config_nodes; ++j)
      columns[slate.config_nodes[j]] = table[slate.states[k * config_nodes + j]];
    return config_nodes ? columns : table[slate.states[k]].expand({slate.nodes, width});
  }

  at::Tensor score(const SlateCase& slate, std::int64_t k) const {
    const NetworkConfig& config = network_.config();
    const at::Tensor raw = at::from_blob(const_cast<float*>(slate.features.data()),
                                         {slate.nodes, network_.schema().node_features}, at::kFloat)
                               .to(at::kDouble);
    const at::Tensor features = raw.sign() * raw.abs().log1p();
    std::vector<at::Tensor> opcodes;
    for (const std::uint8_t opcode : slate.opcodes)
      opcodes.push_back(config.encoder.opcode_width ? p("encoder.opcode.weight")[opcode]
                                                    : at::zeros({0}, at::kDouble));
    const at::Tensor node = at::mm(features, p("encoder.node.weight")) + p("encoder.node.bias");
    at::Tensor x = at::cat({at::stack(opcodes), node, config_columns(slate, k)}, 1);
    x = at::relu(at::mm(x, p("encoder.join.weight")) + p("encoder.join.bias"));
    const std::vector<SageConfig> layers = config.sage_layers();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const SageConfig& layer = layers[i];
      const std::string prefix = "blocks." + std::to_string(i) + ".sage.";
      at::Tensor out = at::mm(x, p(prefix + "self.weight"));
      out = out + p(prefix + (layer.mix.edge_kinds.empty() ? "self.bias" : "neighbours.bias"));
      for (std::size_t d = 0; d < layer.mix.edge_kinds.size(); ++d) {
        const std::string name = d ? "neighbours_" + std::to_string(d) : "neighbours";
        out = out + at::mm(aggregate(slate, layer.mix, d, x), p(prefix + name + ".weight"));
      }
      if (layer.residual && out.size(1) == x.size(1)) out = out + x;
      x = layer.activation == Activation::relu ? at::relu(out) : out;
    }
    const at::Tensor values = at::mm(x, p("head.weight")) + p("head.bias");
    return config.output_scale *
           (config.pools[0].aggregation == Aggregation::mean ? values.mean() : values.sum());
  }

  const Network& network_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace tpudist::test
