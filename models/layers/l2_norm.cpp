#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

class L2Norm : public Layer {
 public:
  explicit L2Norm(const LayerPosition& position) : Layer(position, "l2_norm") {}

  std::string description() const override { return "l2_norm"; }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += in_; }

  RowStates forward(const RowStates& x, const LayerWeights&, const LayerCall& call) const override {
    return normalise_l2(x, call.backend);
  }
};

}  // namespace

at::Tensor normalise_l2(const at::Tensor& x, const Backend& backend) {
  return map_rows(
      [](const auto& rows, const auto&) {
        // The gradient of the root of 0 is not finite.
        return rows[0] / rows[0].square().sum(-1, true).clamp_min(1e-24).sqrt();
      },
      {x}, {}, backend);
}

std::shared_ptr<const Layer> read_l2_norm(ConfigNode, const LayerPosition& position) {
  return std::make_shared<L2Norm>(position);
}

}  // namespace tpudist
