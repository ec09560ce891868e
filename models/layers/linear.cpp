#include "models/layers/layers.hpp"

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

class Linear : public Layer {
 public:
  Linear(const LayerPosition& position, std::int64_t width, bool bias, const LinearStart& start,
         Activation activation)
      : Layer(position, "linear"),
        out_(width),
        bias_(bias),
        start_(start),
        activation_(activation) {}

  std::string description() const override {
    return "linear " + std::to_string(out_) +
           (activation_ == Activation::none ? "" : ", " + activation_name(activation_));
  }
  std::int64_t channels() const override { return out_; }

  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries{linear_weight(prefix_ + "weight", in_, out_),
                                        linear_bias(prefix_ + "bias", in_, out_)};
    start_.apply(entries[0], entries[1]);
    if (!bias_) entries.pop_back();
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    network.steps.back().behind += product_work(in_, out_);
    network.steps.back().floats += out_;
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const at::Tensor y =
        linear_rows(x, weights[prefix_ + "weight"],
                    bias_ ? weights[prefix_ + "bias"] : at::Tensor(), call.backend);
    return activate_rows(y, activation_, call.backend);
  }

 private:
  std::int64_t out_;
  bool bias_;
  LinearStart start_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> read_linear(ConfigNode block, const LayerPosition& position) {
  block.require("width");
  const std::int64_t width = block.integer("width", 64, {1, kMaxWidth});
  const bool bias = block.boolean("bias", true);
  const LinearStart start = LinearStart::read(block);
  return std::make_shared<Linear>(position, width, bias, start, read_activation_key(block, "none"));
}

}  // namespace tpudist
