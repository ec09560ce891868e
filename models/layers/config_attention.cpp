#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/softmax_gate.hpp"
#include "models/operators/sparse_rows.hpp"

namespace tpudist {
namespace {

class ConfigAttention : public Layer {
 public:
  ConfigAttention(const LayerContext& place, double temperature)
      : name_(place.prefix + "config_attention.temperature"),
        channels_(place.channels),
        step_(place.step),
        temperature_(temperature) {}

  std::string description() const override { return "config_attention"; }
  std::int64_t channels() const override { return 2 * channels_; }
  std::vector<LayerShape> steps() const override {
    return {{{EdgeKind::configs}, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    ParameterEntry entry{name_, {1}};
    entry.group = ParameterGroup::norms;
    entry.initialiser = {Initialiser::Kind::constant, temperature_};
    return {entry};
  }
  void add_work(NetworkWork& network) const override {
    network.steps.push_back({0, 0, 0, 3 * channels_, 0});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    return softmax_gate(gather_rows(x, call.plan.layers[step_]->self, call.backend),
                        weights[name_].squeeze(1), *call.context.groups[step_], call.backend);
  }

 private:
  std::string name_;
  std::int64_t channels_;
  int step_;
  double temperature_;
};

}  // namespace

std::shared_ptr<const Layer> read_config_attention(ConfigNode block, const LayerContext& place) {
  return std::make_shared<ConfigAttention>(place, block.number("temperature", 0.5, {1e-6, 1e6}));
}

}  // namespace tpudist
