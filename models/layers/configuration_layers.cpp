#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

// Layers that look at all nodes of a configuration, at its state, or at other configurations.

namespace tpudist {
namespace {

class ConfigAttention : public Layer {
 public:
  ConfigAttention(const LayerPosition& position, double temperature)
      : Layer(position, "config_attention"), temperature_(temperature) {}

  std::string description() const override { return "config_attention"; }
  std::int64_t channels() const override { return 2 * in_; }
  std::vector<LayerShape> steps() const override {
    return {{{EdgeKind::configs}, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    return {norm_parameter(prefix_ + "temperature", 1, temperature_)};
  }
  void add_work(NetworkWork& network) const override { network.add_step({0, 0, 0, 3 * in_, 0}); }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    return softmax_gate(gather_rows(x, call.plan.layers[step_]->self, call.backend),
                        weights[prefix_ + "temperature"].squeeze(1), *call.context.groups[step_],
                        call.backend);
  }

 private:
  double temperature_;
};

// A norm over the nodes of each configuration.
class NodeNorm : public Layer {
 public:
  // `shift`: whether the subtracted share of the mean is learned.
  NodeNorm(const LayerPosition& position, const char* name, bool shift, bool affine, double eps)
      : Layer(position, name), name_(name), shift_(shift), affine_(affine), eps_(eps) {}

  std::string description() const override { return name_; }
  std::vector<LayerShape> steps() const override {
    return {{{EdgeKind::nodes}, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    if (affine_) {
      entries.push_back(norm_parameter(prefix_ + "weight", in_, 1));
      entries.push_back(norm_parameter(prefix_ + "bias", in_, 0));
    }
    if (shift_) entries.push_back(norm_parameter(prefix_ + "mean_scale", in_, 1));
    return entries;
  }
  // Kept: the gathered rows, and of `affine` the normalised ones and the weights of the rows.
  void add_work(NetworkWork& network) const override {
    network.add_step({0, 0, 0, in_}, {.behind = static_cast<double>((affine_ ? 3 : 1) * in_)});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const at::Tensor own = gather_rows(x, call.plan.layers[step_]->self, call.backend);
    const at::Tensor y =
        normalise_groups(own, shift_ ? weights[prefix_ + "mean_scale"] : at::Tensor(), eps_,
                         *call.context.groups[step_], call.backend);
    return affine_ ? scale_and_shift(y, weights, prefix_, call.backend) : y;
  }

 private:
  std::string name_;
  bool shift_, affine_;
  double eps_;
};

double read_eps(ConfigNode block) {
  return block.number("eps", 1e-5, {1e-30, 1});
}

class JoinStates : public Layer {
 public:
  JoinStates(const LayerPosition& position, std::int64_t width)
      : Layer(position, "join_config"), state_(position.state_channels), out_(width) {}

  std::string description() const override { return "join_config " + std::to_string(channels()); }
  std::int64_t channels() const override { return out_ ? out_ : in_ + state_; }
  std::vector<LayerShape> steps() const override { return {{{}, Aggregation::sum, true}}; }
  std::vector<ParameterEntry> parameters() const override {
    if (out_ == 0) return {};
    ParameterEntry rows = linear_weight(prefix_ + "rows.weight", in_, out_),
                   bias = linear_bias(prefix_ + "rows.bias", in_, out_),
                   states = linear_weight(prefix_ + "states.weight", state_, out_);
    // Together they are one Linear over [x | state].
    rows.initialiser.fan_in = bias.initialiser.fan_in = states.initialiser.fan_in = in_ + state_;
    return {rows, bias, states};
  }
  void add_work(NetworkWork& network) const override {
    network.state += product_work(state_, out_);
    network.add_step({product_work(in_, out_), 0, 0, channels()},
                     {.behind = out_ == 0 ? static_cast<double>(channels()) : 0});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const GatherView self = call.plan.layers[step_]->self;
    const StateIndex& index = *call.context.state_index[step_];
    const GatherView state(index.index, index.transposed);
    if (out_ == 0) {
      return join_channels(
          {gather_rows(x, self, call.backend), gather_rows(call.states, state, call.backend)},
          call.backend);
    }
    const at::Tensor rows = apply_linear(x, weights, prefix_ + "rows", call.backend);
    const at::Tensor states =
        apply_linear(call.states, weights, prefix_ + "states", call.backend, false);
    return sum_of_gathered({{rows, self}, {states, state}}, call.backend);
  }

 private:
  std::int64_t state_, out_;
};

class VirtualNode : public Layer {
 public:
  VirtualNode(const LayerPosition& position, std::int64_t hidden, Aggregation aggregation,
              Activation activation)
      : Layer(position, "virtual_node"),
        hidden_(hidden),
        aggregation_(aggregation),
        activation_(activation) {}

  std::string description() const override {
    return "virtual_node through " + std::to_string(hidden_) + ", " + activation_name(activation_);
  }
  std::vector<LayerShape> steps() const override {
    return {{{EdgeKind::nodes}, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    add_linear(entries, prefix_ + "nn.0", in_, hidden_);
    add_linear(entries, prefix_ + "nn.2", hidden_, in_);
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    network.add_step({0, 2 * product_work(in_, hidden_), 0, in_, 1, in_},
                     {.neighbourhood = static_cast<double>(2 * in_ + 2 * hidden_)});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const PlanLayer& step = *call.plan.layers[step_];
    const EdgeSet& all = step.edges[0];
    const auto uses = split_uses(x, 2, call.backend);
    const at::Tensor gathered = aggregate_rows(all.aggregate, uses[1], aggregation_, call.backend),
                     hidden = activate_rows(
                         apply_linear(gathered, weights, prefix_ + "nn.0", call.backend),
                         Activation::relu, call.backend),
                     sent = activate_rows(
                         apply_linear(hidden, weights, prefix_ + "nn.2", call.backend), activation_,
                         call.backend);
    return sum_of_gathered({{uses[0], step.self}, {sent, all.neighbourhood}}, call.backend);
  }

 private:
  std::int64_t hidden_;
  Aggregation aggregation_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> read_config_attention(ConfigNode block,
                                                   const LayerPosition& position) {
  return std::make_shared<ConfigAttention>(position, block.number("temperature", 0.5, {1e-6, 1e6}));
}

std::shared_ptr<const Layer> read_instance_norm(ConfigNode block, const LayerPosition& position) {
  const bool affine = block.boolean("affine", false);
  return std::make_shared<NodeNorm>(position, "instance_norm", false, affine, read_eps(block));
}

std::shared_ptr<const Layer> read_graph_norm(ConfigNode block, const LayerPosition& position) {
  return std::make_shared<NodeNorm>(position, "graph_norm", true, true, read_eps(block));
}

std::shared_ptr<const Layer> read_join_states(ConfigNode block, const LayerPosition& position) {
  const std::int64_t width = block.integer("width", 0, {0, kMaxWidth});
  return std::make_shared<JoinStates>(position, width);
}

std::shared_ptr<const Layer> read_virtual_node(ConfigNode block, const LayerPosition& position) {
  const std::int64_t hidden = block.integer("hidden", position.channels, {1, kMaxWidth});
  const std::string aggregation = block.choice("aggregation", "sum", {"sum", "mean", "max"});
  return std::make_shared<VirtualNode>(position, hidden,
                                       aggregation == "sum"    ? Aggregation::sum
                                       : aggregation == "mean" ? Aggregation::mean
                                                               : Aggregation::max,
                                       read_activation_key(block));
}

}  // namespace tpudist
