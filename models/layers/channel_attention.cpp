#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

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
  ChannelAttention(const LayerPosition& position, std::int64_t reduction)
      : Layer(position, "channel_attention"),
        inner_(std::max<std::int64_t>(1, position.channels / reduction)) {}

  std::string description() const override {
    return "channel_attention through " + std::to_string(inner_);
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    add_linear(entries, prefix_ + "squeeze", in_, inner_);
    add_linear(entries, prefix_ + "excite", inner_, in_);
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    network.steps.back().behind += 2 * product_work(in_, inner_);
    network.steps.back().floats += in_;
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
        open_gate, {uses[1], gate}, in_, call.backend);
  }

 private:
  std::int64_t inner_;
};

}  // namespace

std::shared_ptr<const Layer> read_channel_attention(ConfigNode block,
                                                    const LayerPosition& position) {
  return std::make_shared<ChannelAttention>(position, block.integer("reduction", 8, {1, 4096}));
}

}  // namespace tpudist
