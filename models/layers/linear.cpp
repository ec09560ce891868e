#include "models/layers/layers.hpp"

#include "models/layers/activate.hpp"
#include "models/layers/linear_start.hpp"
#include "models/operators/linear_rows.hpp"

namespace tpudist {
namespace {

class Linear : public Layer {
 public:
  Linear(const LayerContext& place, std::int64_t width, bool bias, const LinearStart& start,
         Activation activation)
      : name_(place.prefix + "linear"),
        in_(place.channels),
        out_(width),
        bias_(bias),
        start_(start),
        activation_(activation) {}

  std::string description() const override {
    const std::string& activation = activation_names()[static_cast<std::size_t>(activation_)];
    return "linear " + std::to_string(out_) +
           (activation_ == Activation::none ? "" : ", " + activation);
  }
  std::int64_t channels() const override { return out_; }

  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries{linear_weight(name_ + ".weight", in_, out_),
                                        linear_bias(name_ + ".bias", in_, out_)};
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
    const at::Tensor y = linear_rows(x, weights[name_ + ".weight"],
                                     bias_ ? weights[name_ + ".bias"] : at::Tensor(), call.backend);
    return activate_rows(y, activation_, call.backend);
  }

 private:
  std::string name_;
  std::int64_t in_, out_;
  bool bias_;
  LinearStart start_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> read_linear(ConfigNode block, const LayerContext& place) {
  block.require("width");
  const std::int64_t width = block.integer("width", 64, {1, kMaxWidth});
  const bool bias = block.boolean("bias", true);
  const LinearStart start = LinearStart::read(block);
  return std::make_shared<Linear>(
      place, width, bias, start,
      activation_of(block.choice("activation", "none", activation_names())));
}

}  // namespace tpudist
