#include "models/layers/join_states.hpp"

#include "models/layers/linear_start.hpp"
#include "models/operators/linear_rows.hpp"
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

  std::string description() const override { return "join_config " + std::to_string(out_); }
  std::int64_t channels() const override { return out_; }
  std::vector<LayerShape> steps() const override { return {{{}, Aggregation::sum, true}}; }
  std::vector<ParameterEntry> parameters() const override {
    ParameterEntry rows = linear_weight(prefix_ + "rows.weight", in_, out_),
                   bias = linear_bias(prefix_ + "rows.bias", in_, out_),
                   states = linear_weight(prefix_ + "states.weight", state_, out_);
    // Together they are one Linear over [x | state].
    rows.initialiser.fan_in = bias.initialiser.fan_in = states.initialiser.fan_in = in_ + state_;
    return {rows, bias, states};
  }
  void add_work(NetworkWork& network) const override {
    network.state += product_work(state_, out_);
    network.steps.push_back({product_work(in_, out_), 0, 0, out_, 0});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const at::Tensor rows = apply_linear(x, weights, prefix_ + "rows", call.backend);
    const at::Tensor states =
        linear_rows(call.states, weights[prefix_ + "states.weight"], at::Tensor(), call.backend);
    const StateIndex& index = *call.context.state_index[step_];
    return sum_of_gathered(
        {{rows, call.plan.layers[step_]->self}, {states, {index.index, index.transposed}}},
        call.backend);
  }

 private:
  std::string prefix_;
  std::int64_t in_, state_, out_;
  int step_;
};

}  // namespace

std::shared_ptr<const Layer> read_join_states(ConfigNode block, const LayerContext& place) {
  block.require("width");
  return std::make_shared<JoinStates>(place, block.integer("width", 64, {1, kMaxWidth}));
}

}  // namespace tpudist
