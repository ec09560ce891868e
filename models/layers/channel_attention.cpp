#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/layers/activate.hpp"
#include "models/operators/map_rows.hpp"
#include "models/operators/split_uses.hpp"

namespace tpudist {
namespace {

// The backward pass of y = x sigmoid(g), rows {x, g}.
void open_gate(const std::vector<at::Tensor>& rows, const at::Tensor& d_y,
               std::vector<at::Tensor>& d_rows) {
  const at::Tensor gate = at::sigmoid(rows[1]);
  if (d_rows[0].defined()) at::mul_out(d_rows[0], d_y, gate);
  if (d_rows[1].defined()) at::sigmoid_backward_out(d_rows[1], d_y * rows[0], gate);
}

class ChannelAttention : public Layer {
 public:
  ChannelAttention(const LayerContext& place, std::int64_t reduction)
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
    const std::vector<at::Tensor> uses = split_uses(x, 2, call.backend);
    const at::Tensor inner =
        activate_rows(apply_linear(uses[0], weights, prefix_ + "squeeze", call.backend),
                      Activation::relu, call.backend);
    const at::Tensor gate = apply_linear(inner, weights, prefix_ + "excite", call.backend);
    return map_rows(
        [](const auto& rows, at::Tensor& y) { at::sigmoid_out(y, rows[1]).mul_(rows[0]); },
        open_gate, {uses[1], gate}, channels_, call.backend);
  }

 private:
  std::string prefix_;
  std::int64_t channels_, inner_;
};

}  // namespace

std::shared_ptr<const Layer> read_channel_attention(ConfigNode block, const LayerContext& place) {
  return std::make_shared<ChannelAttention>(place, block.integer("reduction", 8, {1, 4096}));
}

}  // namespace tpudist
