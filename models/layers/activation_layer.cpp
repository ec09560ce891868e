#include "models/layers/activation_layer.hpp"

#include "models/layers/activate.hpp"

namespace tpudist {
namespace {

class ActivationLayer : public Layer {
 public:
  ActivationLayer(const LayerContext& place, Activation activation)
      : channels_(place.channels), activation_(activation) {}

  std::string description() const override {
    return activation_names()[static_cast<std::size_t>(activation_)];
  }
  std::int64_t channels() const override { return channels_; }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += channels_; }
  RowStates forward(const RowStates& x, const LayerWeights&, const LayerCall& call) const override {
    return activate_rows(x, activation_, call.backend);
  }

 private:
  std::int64_t channels_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> read_activation(ConfigNode block, const LayerContext& place) {
  return std::make_shared<ActivationLayer>(
      place, activation_of(block.choice("kind", "relu", activation_names())));
}

}  // namespace tpudist
