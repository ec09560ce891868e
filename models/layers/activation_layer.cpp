#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

class ActivationLayer : public Layer {
 public:
  ActivationLayer(const LayerPosition& position, Activation activation)
      : Layer(position, "activation"), activation_(activation) {}

  std::string description() const override { return activation_name(activation_); }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += in_; }
  RowStates forward(const RowStates& x, const LayerWeights&, const LayerCall& call) const override {
    return activate_rows(x, activation_, call.backend);
  }

 private:
  Activation activation_;
};

class Prelu : public Layer {
 public:
  Prelu(const LayerPosition& position, bool per_channel)
      : Layer(position, "prelu"), slopes_(per_channel ? position.channels : 1) {}

  std::string description() const override { return "prelu"; }
  std::vector<ParameterEntry> parameters() const override {
    return {norm_parameter(prefix_ + "weight", slopes_, 0.25)};
  }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += in_; }
  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    return map_rows(
        [](const auto& rows, const auto& slope) {
          return at::where(rows[0] > 0, rows[0], rows[0] * slope[0]);
        },
        {x}, {weights[prefix_ + "weight"]}, call.backend);
  }

 private:
  std::int64_t slopes_;
};

}  // namespace

std::shared_ptr<const Layer> read_activation(ConfigNode block, const LayerPosition& position) {
  return std::make_shared<ActivationLayer>(
      position, activation_of(block.choice("kind", "relu", activation_names())));
}

std::shared_ptr<const Layer> read_prelu(ConfigNode block, const LayerPosition& position) {
  return std::make_shared<Prelu>(position, block.boolean("per_channel", false));
}

}  // namespace tpudist
