#include "models/layers/l2_norm.hpp"

#include <ATen/ATen.h>

#include "models/operators/map_rows.hpp"

namespace tpudist {
namespace {

class L2Norm : public Layer {
 public:
  explicit L2Norm(const LayerContext& place) : channels_(place.channels) {}

  std::string description() const override { return "l2_norm"; }
  std::int64_t channels() const override { return channels_; }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += channels_; }

  RowStates forward(const RowStates& x, const LayerWeights&, const LayerCall& call) const override {
    return normalise_l2(x, call.backend);
  }

 private:
  std::int64_t channels_;
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

std::shared_ptr<const Layer> read_l2_norm(ConfigNode, const LayerContext& place) {
  return std::make_shared<L2Norm>(place);
}

}  // namespace tpudist
