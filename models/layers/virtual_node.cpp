#include "models/layers/layers.hpp"

#include "models/layers/activate.hpp"
#include "models/layers/linear_start.hpp"
#include "models/operators/sparse_rows.hpp"
#include "models/operators/split_uses.hpp"

namespace tpudist {
namespace {

class VirtualNode : public Layer {
 public:
  VirtualNode(const LayerContext& place, std::int64_t hidden, Aggregation aggregation,
              Activation activation)
      : prefix_(place.prefix + "virtual_node."),
        channels_(place.channels),
        hidden_(hidden),
        step_(place.step),
        aggregation_(aggregation),
        activation_(activation) {}

  std::string description() const override {
    return "virtual_node through " + std::to_string(hidden_) + ", " +
           activation_names()[static_cast<std::size_t>(activation_)];
  }
  std::int64_t channels() const override { return channels_; }
  std::vector<LayerShape> steps() const override {
    return {{{EdgeKind::nodes}, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    return {linear_weight(prefix_ + "nn.0.weight", channels_, hidden_),
            linear_bias(prefix_ + "nn.0.bias", channels_, hidden_),
            linear_weight(prefix_ + "nn.2.weight", hidden_, channels_),
            linear_bias(prefix_ + "nn.2.bias", hidden_, channels_)};
  }
  void add_work(NetworkWork& network) const override {
    network.steps.push_back({0, 2 * product_work(channels_, hidden_), 0, channels_, 1, channels_});
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
  std::string prefix_;
  std::int64_t channels_, hidden_;
  int step_;
  Aggregation aggregation_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> read_virtual_node(ConfigNode block, const LayerContext& place) {
  const std::int64_t hidden = block.integer("hidden", place.channels, {1, kMaxWidth});
  const std::string aggregation = block.choice("aggregation", "sum", {"sum", "mean", "max"});
  return std::make_shared<VirtualNode>(
      place, hidden,
      aggregation == "sum"    ? Aggregation::sum
      : aggregation == "mean" ? Aggregation::mean
                              : Aggregation::max,
      activation_of(block.choice("activation", "relu", activation_names())));
}

}  // namespace tpudist
