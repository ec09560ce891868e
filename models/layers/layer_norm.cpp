#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

class LayerNorm : public Layer {
 public:
  LayerNorm(const LayerPosition& position, bool affine, double eps)
      : Layer(position, "layer_norm"), affine_(affine), eps_(eps) {}

  std::string description() const override { return "layer_norm"; }
  std::vector<ParameterEntry> parameters() const override {
    if (!affine_) return {};
    return {norm_parameter(prefix_ + "weight", in_, 1), norm_parameter(prefix_ + "bias", in_, 0)};
  }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += in_; }

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
  bool affine_;
  double eps_;
};

}  // namespace

std::shared_ptr<const Layer> read_layer_norm(ConfigNode block, const LayerPosition& position) {
  const bool affine = block.boolean("affine", true);
  return std::make_shared<LayerNorm>(position, affine, block.number("eps", 1e-5, {1e-30, 1}));
}

}  // namespace tpudist
