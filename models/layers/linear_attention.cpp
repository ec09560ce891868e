#include "models/layers/linear_attention.hpp"

#include <ATen/ATen.h>

#include "models/layers/activate.hpp"
#include "models/layers/linear_start.hpp"
#include "models/operators/linear_rows.hpp"
#include "models/operators/map_rows.hpp"
#include "models/operators/row_products.hpp"
#include "models/operators/sparse_rows.hpp"
#include "models/operators/split_uses.hpp"

namespace tpudist {
namespace {

// The sums of a configuration are heads x width x width numbers.
constexpr std::int64_t kMostHeadWidth = 512;

// Added to the sum of a row's weights, as in the authors' code: large negative keys have weights 0.
constexpr double kEps = 1e-6;

// elu(x) + 1
at::Tensor positive(const at::Tensor& x, const Backend& backend) {
  return map_rows([](const auto& rows, at::Tensor& y) { at::elu_out(y, rows[0]).add_(1); },
                  [](const auto& rows, const at::Tensor& d_y, auto& d_rows) {
                    at::elu_backward_out(d_rows[0], d_y, 1, 1, 1, /*is_result=*/false, rows[0]);
                  },
                  {x}, x.size(2), backend);
}

// Each head's channels and a 1 behind them, whose sum is that of the weights.
at::Tensor with_ones(const at::Tensor& x, std::int64_t heads, const Backend& backend) {
  const std::int64_t width = x.size(2) / heads;
  return map_rows(
      [heads, width](const auto& rows, at::Tensor& y) {
        const at::Tensor of_heads = y.unflatten(2, {heads, width + 1});
        of_heads.narrow(3, 0, width).copy_(rows[0].unflatten(2, {heads, width}));
        of_heads.select(3, width).fill_(1);
      },
      [heads, width](const auto&, const at::Tensor& d_y, auto& d_rows) {
        d_rows[0]
            .unflatten(2, {heads, width})
            .copy_(d_y.unflatten(2, {heads, width + 1}).narrow(3, 0, width));
      },
      {x}, heads * (width + 1), backend);
}

// Each head's channels divided by the last one.
at::Tensor divided(const at::Tensor& x, std::int64_t heads, const Backend& backend) {
  return map_rows(
      [heads](const auto& rows, const auto&) {
        const at::Tensor in = rows[0].unflatten(2, {heads, -1});
        const std::int64_t width = in.size(3) - 1;
        return (in.narrow(3, 0, width) / (in.narrow(3, width, 1) + kEps)).flatten(2);
      },
      {x}, {}, backend);
}

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

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const Backend& backend = call.backend;
    const PlanLayer& step = *call.plan.layers[step_];
    const EdgeSet& all = step.edges[0];
    const std::vector<at::Tensor> uses = split_uses(x, 3, backend);
    const auto linear = [&](std::size_t use, const std::string& name) {
      return linear_rows(uses[use], weights[prefix_ + name + ".weight"],
                         bias_ ? weights[prefix_ + name + ".bias"] : at::Tensor(), backend);
    };
    const at::Tensor sums =
        sum_products(all.aggregate, positive(linear(0, "key"), backend),
                     with_ones(linear(1, "value"), heads_, backend), heads_, backend);
    const at::Tensor query = gather_rows(positive(linear(2, "query"), backend), step.self, backend);
    return activate_rows(
        divided(apply_products(query, sums, all.neighbourhood, heads_, backend), heads_, backend),
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
