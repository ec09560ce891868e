#include "models/layers/layers.hpp"

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

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
    network.steps.push_back({0, 2 * product_work(in_, hidden_), 0, in_, 1, in_});
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
