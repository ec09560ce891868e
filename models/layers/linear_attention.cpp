#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/layers/activate.hpp"
#include "models/layers/linear_start.hpp"
#include "models/operators/attend_nodes.hpp"
#include "models/operators/linear_rows.hpp"
#include "models/operators/sparse_rows.hpp"
#include "models/operators/split_uses.hpp"

namespace tpudist {
namespace {

// The sums of a configuration are heads x width x width numbers.
constexpr std::int64_t kMostHeadWidth = 512;

class LinearAttention : public Layer {
 public:
  LinearAttention(const LayerContext& place, std::int64_t width, std::int64_t heads, bool bias,
                  Activation activation)
      : prefix_(place.prefix + "linear_attention."),
        in_(place.channels),
        width_(width),
        heads_(heads),
        step_(place.step),
        bias_(bias),
        activation_(activation) {}

  std::string description() const override {
    return "linear_attention " + std::to_string(heads_) + (heads_ == 1 ? " head" : " heads") +
           " x " + std::to_string(width_) + ", " +
           activation_names()[static_cast<std::size_t>(activation_)];
  }
  std::int64_t channels() const override { return heads_ * width_; }
  std::vector<LayerShape> steps() const override {
    return {{{EdgeKind::nodes}, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    for (const char* name : {"query", "key", "value"}) {
      entries.push_back(linear_weight(prefix_ + name + ".weight", in_, channels()));
      if (bias_) entries.push_back(linear_bias(prefix_ + name + ".bias", in_, channels()));
    }
    return entries;
  }
  // A neighbourhood is all nodes: its products are not known here, so each row before counts once.
  void add_work(NetworkWork& network) const override {
    const double product = 2.0 * static_cast<double>(channels() * (width_ + 1));
    network.steps.push_back(
        {3 * product_work(in_, channels()) + product, 0, product, 4 * channels(), 1});
  }
  void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const override {
    const auto step = static_cast<std::size_t>(step_);
    context.attention[step] = std::make_unique<NodeAttention>(*plan.layers[step], 1, dtype);
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const Backend& backend = call.backend;
    const std::vector<at::Tensor> uses = split_uses(x, 3, backend);
    const auto linear = [&](std::size_t use, const std::string& name) {
      return linear_rows(uses[use], weights[prefix_ + name + ".weight"],
                         bias_ ? weights[prefix_ + name + ".bias"] : at::Tensor(), backend);
    };
    const at::Tensor query =
        gather_rows(linear(0, "query"), call.plan.layers[step_]->self, backend);
    return activate_rows(attend_linearly(query, linear(1, "key"), linear(2, "value"),
                                         *call.context.attention[step_], heads_, backend),
                         activation_, backend);
  }

 private:
  std::string prefix_;
  std::int64_t in_, width_, heads_;
  int step_;
  bool bias_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> read_linear_attention(ConfigNode block, const LayerContext& place) {
  block.require("width");
  const std::int64_t width = block.integer("width", 64, {1, kMostHeadWidth});
  std::int64_t heads = block.integer("heads", 1, {1, kMaxWidth});
  if (heads * width > kMaxWidth) {
    block.mistake("heads", "times width is more than " + std::to_string(kMaxWidth));
    heads = 1;
  }
  const bool bias = block.boolean("bias", true);
  return std::make_shared<LinearAttention>(
      place, width, heads, bias,
      activation_of(block.choice("activation", "none", activation_names())));
}

}  // namespace tpudist
