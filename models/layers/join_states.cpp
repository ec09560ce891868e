#include "models/layers/layers.hpp"

#include "models/layers/linear_start.hpp"
#include "models/operators/linear_rows.hpp"
#include "models/operators/map_rows.hpp"
#include "models/operators/sparse_rows.hpp"

namespace tpudist {
namespace {

class JoinStates : public Layer {
 public:
  JoinStates(const LayerContext& place, std::int64_t width)
      : prefix_(place.prefix + "join_config."),
        in_(place.channels),
        state_(place.state_channels),
        out_(width),
        step_(place.step) {}

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
        linear_rows(call.states, weights[prefix_ + "states.weight"], at::Tensor(), call.backend);
    return sum_of_gathered({{rows, self}, {states, state}}, call.backend);
  }

 private:
  std::string prefix_;
  std::int64_t in_, state_, out_;
  int step_;
};

}  // namespace

std::shared_ptr<const Layer> read_join_states(ConfigNode block, const LayerContext& place) {
  const std::int64_t width = block.integer("width", 0, {0, kMaxWidth});
  return std::make_shared<JoinStates>(place, width);
}

}  // namespace tpudist
