#include "models/layers/layers.hpp"

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

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
    network.steps.push_back({product_work(in_, out_), 0, 0, channels(), 0});
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

}  // namespace

std::shared_ptr<const Layer> read_join_states(ConfigNode block, const LayerPosition& position) {
  const std::int64_t width = block.integer("width", 0, {0, kMaxWidth});
  return std::make_shared<JoinStates>(position, width);
}

}  // namespace tpudist
