#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/layers/activate.hpp"
#include "models/operators/map_rows.hpp"

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

class Prelu : public Layer {
 public:
  Prelu(const LayerContext& place, bool per_channel)
      : name_(place.prefix + "prelu.weight"),
        channels_(place.channels),
        slopes_(per_channel ? place.channels : 1) {}

  std::string description() const override { return "prelu"; }
  std::int64_t channels() const override { return channels_; }
  std::vector<ParameterEntry> parameters() const override {
    ParameterEntry slope{name_, {slopes_}};
    slope.group = ParameterGroup::norms;
    slope.initialiser = {Initialiser::Kind::constant, 0.25};
    return {slope};
  }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += channels_; }
  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    return map_rows(
        [](const auto& rows, const auto& slope) {
          return at::where(rows[0] > 0, rows[0], rows[0] * slope[0]);
        },
        {x}, {weights[name_]}, call.backend);
  }

 private:
  std::string name_;
  std::int64_t channels_, slopes_;
};

}  // namespace

std::shared_ptr<const Layer> read_activation(ConfigNode block, const LayerContext& place) {
  return std::make_shared<ActivationLayer>(
      place, activation_of(block.choice("kind", "relu", activation_names())));
}

std::shared_ptr<const Layer> read_prelu(ConfigNode block, const LayerContext& place) {
  return std::make_shared<Prelu>(place, block.boolean("per_channel", false));
}

}  // namespace tpudist
