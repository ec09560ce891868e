#include "models/layers/channel_attention.hpp"

#include <ATen/ATen.h>

#include "models/layers/activation.hpp"
#include "models/operators/map_rows.hpp"

namespace tpudist {
namespace {

class ChannelAttention : public Layer {
 public:
  ChannelAttention(const LayerPlace& place, std::int64_t reduction)
      : prefix_(place.prefix + "channel_attention."),
        channels_(place.channels),
        inner_(std::max<std::int64_t>(1, place.channels / reduction)) {}

  std::string description() const override {
    return "channel_attention through " + std::to_string(inner_);
  }
  std::int64_t channels() const override { return channels_; }
  std::vector<ParameterEntry> parameters() const override {
    return {linear_weight(prefix_ + "squeeze.weight", channels_, inner_),
            linear_bias(prefix_ + "squeeze.bias", channels_, inner_),
            linear_weight(prefix_ + "excite.weight", inner_, channels_),
            linear_bias(prefix_ + "excite.bias", inner_, channels_)};
  }
  void add_work(NetworkWork& network) const override {
    network.steps.back().behind += 2 * product_work(channels_, inner_);
    network.steps.back().floats += channels_;
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const at::Tensor inner =
        activate_rows(apply_linear(x, weights, prefix_ + "squeeze", call.backend), Activation::relu,
                      call.backend);
    const at::Tensor gate = apply_linear(inner, weights, prefix_ + "excite", call.backend);
    return map_rows([](const auto& rows, const auto&) { return rows[0] * at::sigmoid(rows[1]); },
                    {x, gate}, {}, call.backend);
  }

 private:
  std::string prefix_;
  std::int64_t channels_, inner_;
};

}  // namespace

std::shared_ptr<const Layer> read_channel_attention(ConfigNode block, const LayerPlace& place) {
  return std::make_shared<ChannelAttention>(place, block.integer("reduction", 8, {1, 4096}));
}

}  // namespace tpudist
