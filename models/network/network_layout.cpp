#include "models/network/network_layout.hpp"

#include <string>

#include "core/aligned.hpp"
#include "models/inputs/graph_input.hpp"

namespace tpudist {
namespace {

Initialiser uniform(std::int64_t fan_in) {
  return {Initialiser::Kind::fan_in, 0, fan_in};
}

LayerLayout add_layer(ParameterTable& table, const SageConfig& config, std::int64_t in,
                      const std::string& prefix) {
  const std::int64_t edge_sets = config.mix.edge_kinds.size();
  LayerLayout layer;
  layer.in = in;
  layer.out = config.width;
  layer.in_stride = pad16(in);
  layer.out_stride = pad16(config.width);
  layer.input_stride = (edge_sets + 1) * layer.in_stride;
  layer.self_column = edge_sets * layer.in_stride;
  layer.residual = config.residual && in == config.width;
  layer.relu = config.activation == Activation::relu;
  layer.max = config.mix.aggregation == Aggregation::max;
  layer.begin = table.length();
  const auto offset = [&](int index) { return table.entries()[index].offset; };
  for (std::int64_t set = 0; set <= edge_sets; ++set) {
    const std::string name = set == edge_sets ? "self"
                             : set == 0       ? "neighbours"
                                              : "neighbours_" + std::to_string(set);
    const std::string torch_name = set == edge_sets ? "lin_r"
                                   : set == 0       ? "lin_l"
                                                    : "lin_l_" + std::to_string(set);
    const int index = table.add({prefix + name + ".weight",
                                 {in, config.width},
                                 ParameterGroup::weights,
                                 uniform(in),
                                 prefix + torch_name + ".weight",
                                 true});
    layer.weights.push_back({set * layer.in_stride, in, offset(index)});
    if (layer.parts.empty() || in != layer.in_stride) {
      layer.parts.push_back(layer.weights.back());
    } else {
      layer.parts.back().width += in;
    }
  }
  layer.bias = offset(table.add({prefix + "neighbours.bias",
                                 {config.width},
                                 ParameterGroup::biases,
                                 uniform(in),
                                 prefix + "lin_l.bias"}));
  layer.end = table.length();
  return layer;
}

}  // namespace

NetworkLayout::NetworkLayout(const NetworkConfig& config, int config_features)
    : precision(config.precision),
      opcode_width(config.encoder.opcode_width),
      node_width(config.encoder.node_width),
      width(config.encoder.width),
      config_features(config_features) {
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, ParameterGroup group,
                       const Initialiser& initialiser) {
    const bool transposes = shape.size() == 2 && group != ParameterGroup::embeddings;
    const int index = table.add({name, std::move(shape), group, initialiser, "", transposes});
    return table.entries()[index].offset;
  };
  using enum ParameterGroup;
  const std::int64_t node_columns = opcode_width + node_width;
  node_stride = pad16(node_columns);
  stride = pad16(width);
  opcode_weight = add("encoder.opcode.weight", {kOpcodes, opcode_width}, embeddings,
                      {Initialiser::Kind::normal});
  node_weight =
      add("encoder.node.weight", {kNodeFeatures, node_width}, weights, uniform(kNodeFeatures));
  node_bias = add("encoder.node.bias", {node_width}, biases, uniform(kNodeFeatures));
  const std::int64_t join_columns = node_columns + config_features;
  join_weight = add("encoder.join.weight", {join_columns, width}, weights, uniform(join_columns));
  join_config = join_weight + node_columns * width;
  join_bias = add("encoder.join.bias", {width}, biases, uniform(join_columns));
  encoder_end = table.length();
  std::int64_t in = width;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    layers.push_back(
        add_layer(table, config.layers[i], in, "blocks." + std::to_string(i) + ".sage."));
    in = config.layers[i].width;
  }
  head_weight = add("head.weight", {in, 1}, output, uniform(in));
  head_bias = add("head.bias", {1}, output, uniform(in));
  head_end = table.length();
}

std::int64_t state_floats(const NetworkLayout& layout, const Plan& plan) {
  std::int64_t floats = plan.first_rows() * layout.width;
  for (std::size_t i = 0; i < layout.layers.size(); ++i)
    floats += plan.rows(i + 1) * layout.layers[i].out;
  return floats;
}

}  // namespace tpudist
