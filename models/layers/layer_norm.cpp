#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/map_rows.hpp"

namespace tpudist {
namespace {

class LayerNorm : public Layer {
 public:
  LayerNorm(const LayerContext& place, bool affine, double eps)
      : prefix_(place.prefix + "layer_norm."),
        channels_(place.channels),
        affine_(affine),
        eps_(eps) {}

  std::string description() const override { return "layer_norm"; }
  std::int64_t channels() const override { return channels_; }
  std::vector<ParameterEntry> parameters() const override {
    if (!affine_) return {};
    ParameterEntry weight{prefix_ + "weight", {channels_}}, bias{prefix_ + "bias", {channels_}};
    weight.group = bias.group = ParameterGroup::norms;
    weight.initialiser = {Initialiser::Kind::constant, 1};
    return {weight, bias};
  }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += channels_; }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    std::vector<at::Tensor> parameters;
    if (affine_) parameters = {weights[prefix_ + "weight"], weights[prefix_ + "bias"]};
    return map_rows(
        [eps = eps_](const auto& rows, const auto& affine) {
          const at::Tensor centred = rows[0] - rows[0].mean(-1, true);
          const at::Tensor y = centred * (centred.square().mean(-1, true) + eps).rsqrt();
          return affine.empty() ? y : y * affine[0] + affine[1];
        },
        {x}, parameters, call.backend);
  }

 private:
  std::string prefix_;
  std::int64_t channels_;
  bool affine_;
  double eps_;
};

}  // namespace

std::shared_ptr<const Layer> read_layer_norm(ConfigNode block, const LayerContext& place) {
  const bool affine = block.boolean("affine", true);
  return std::make_shared<LayerNorm>(place, affine, block.number("eps", 1e-5, {1e-30, 1}));
}

}  // namespace tpudist
