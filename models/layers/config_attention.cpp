#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

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
  void add_work(NetworkWork& network) const override {
    network.steps.push_back({0, 0, 0, 3 * in_, 0});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    return softmax_gate(gather_rows(x, call.plan.layers[step_]->self, call.backend),
                        weights[prefix_ + "temperature"].squeeze(1), *call.context.groups[step_],
                        call.backend);
  }

 private:
  double temperature_;
};

}  // namespace

std::shared_ptr<const Layer> read_config_attention(ConfigNode block,
                                                   const LayerPosition& position) {
  return std::make_shared<ConfigAttention>(position, block.number("temperature", 0.5, {1e-6, 1e6}));
}

}  // namespace tpudist
