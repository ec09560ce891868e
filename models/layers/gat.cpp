#include "models/layers/layers.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

struct GatConfig {
  bool second_version = false, concat = true;
  std::int64_t width = 0, heads = 1;
  std::vector<EdgeKind> directions;
  double negative_slope = 0.2;
  Activation activation = Activation::relu;

  std::string name() const { return second_version ? "gatv2" : "gat"; }
  std::int64_t inner() const { return heads * width; }
};

// x [M, n, heads x width] times vectors [M, n or 1, 1, heads, width], added up for each head.
at::Tensor dots(const at::Tensor& x, const at::Tensor& vectors) {
  const at::Tensor vector = vectors.squeeze(2);
  return sum_channels(x.unflatten(2, {vector.size(2), vector.size(3)}) * vector).squeeze(3);
}

class Gat : public Layer {
 public:
  Gat(const GatConfig& config, const LayerPosition& position)
      : Layer(position, config.name()), config_(config) {}

  std::string description() const override {
    return config_.name() + " " + std::to_string(config_.heads) +
           (config_.heads == 1 ? " head" : " heads") + " x " + std::to_string(config_.width) +
           (config_.concat ? "" : ", mean") + direction_text(config_.directions) + ", " +
           activation_name(config_.activation);
  }
  std::int64_t channels() const override {
    return config_.concat ? config_.inner() : config_.width;
  }
  std::vector<LayerShape> steps() const override {
    return {{config_.directions, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    const auto add_linear = [&](const std::string& name, bool bias) {
      entries.push_back(linear_weight(prefix_ + name + ".weight", in_, config_.inner()));
      entries.back().initialiser.kind = Initialiser::Kind::xavier;
      if (bias) entries.push_back(linear_bias(prefix_ + name + ".bias", in_, config_.inner()));
    };
    const auto add_vector = [&](const std::string& name) {
      entries.push_back({prefix_ + name, {1, config_.heads, config_.width}});
      entries.back().initialiser = {Initialiser::Kind::xavier, 0, config_.heads, config_.width};
    };
    if (config_.second_version) {
      add_linear("lin_l", true);
      add_linear("lin_r", true);
      add_vector("att");
    } else {
      add_linear("lin", false);
      add_vector("att_src");
      add_vector("att_dst");
    }
    entries.push_back(linear_bias(prefix_ + "bias", in_, channels()));
    entries.back().initialiser = {Initialiser::Kind::constant, 0};
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    const double inner = static_cast<double>(config_.inner());
    network.add_step(
        {(config_.second_version ? 2 : 1) * product_work(in_, config_.inner()), 8 * inner,
         8 * inner, 5 * config_.inner(), static_cast<int>(config_.directions.size()),
         (config_.second_version ? 3 : 1) * config_.inner()},
        {.entry = (config_.second_version ? 5 : 2) * inner});
  }

  // The entries of the step, and the logarithms of their counts: counts are factors of the powers
  // in the softmax.
  void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const override {
    const auto step = static_cast<std::size_t>(step_);
    const NeighbourEntries& entries = context.make_entries(plan, step);
    std::vector<double> logarithms;
    for (const double count : entries.count) logarithms.push_back(std::log(count));
    context.factors[step] = at::tensor(logarithms, at::kDouble).to(dtype).view({1, -1, 1});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const Backend& backend = call.backend;
    const NeighbourEntries& entries = *call.context.entries[step_];
    const auto [logits, values] =
        config_.second_version ? second(x, weights, call) : first(x, weights, call);
    const std::vector<at::Tensor> powers =
        split_uses(powers_of(logits, entries, backend), 2, backend);
    const at::Tensor messages = map_rows(
        [width = config_.width](const auto& rows, const auto&) {
          return (repeat_channels(rows[0].unsqueeze(3), width) *
                  rows[1].unflatten(2, {rows[0].size(2), -1}))
              .flatten(2);
        },
        {powers[0], gather_rows(values, entries.sources(), backend)}, {}, backend);
    const auto sum = [&](const at::Tensor& of) {
      return aggregate_rows(entries.of_row, of, Aggregation::sum, backend);
    };
    const at::Tensor y = map_rows(
        [concat = config_.concat, width = config_.width](const auto& rows, const auto& bias) {
          const std::int64_t count = rows[1].size(2);
          // The largest power of a row is 1; only padding of a joined plan has none.
          const at::Tensor heads = rows[0].unflatten(2, {count, -1}) /
                                   repeat_channels(rows[1].clamp_min(1).unsqueeze(3), width);
          return (concat ? heads.flatten(2)
                         : sum_channels(heads.transpose(2, 3)).squeeze(3) / count) +
                 bias[0];
        },
        {sum(messages), sum(powers[1])}, {weights[prefix_ + "bias"]}, backend);
    return activate_rows(y, config_.activation, backend);
  }

 private:
  // Logits of entries [M, entries, heads], and the values to weigh [M, rows before, channels].
  struct Attention {
    at::Tensor logits, values;
  };

  // For each entry, `source` of its source plus `own` of its row. `own`: by rows before the layer.
  at::Tensor meet(const at::Tensor& source, const at::Tensor& own, const LayerCall& call) const {
    const NeighbourEntries& entries = *call.context.entries[step_];
    const at::Tensor after = gather_rows(own, call.plan.layers[step_]->self, call.backend);
    return sum_of_gathered({{source, entries.sources()}, {after, entries.rows()}}, call.backend);
  }

  Attention first(const at::Tensor& x, const LayerWeights& weights, const LayerCall& call) const {
    const auto uses =
        split_uses(linear_rows(x, weights[prefix_ + "lin.weight"], at::Tensor(), call.backend), 3,
                   call.backend);
    const auto along = [&](const at::Tensor& rows, const char* name) {
      return map_rows([](const auto& in, const auto& vector) { return dots(in[0], vector[0]); },
                      {rows}, {weights[prefix_ + name]}, call.backend);
    };
    const double slope = config_.negative_slope;
    return {map_rows([slope](const auto& rows,
                             const auto&) { return at::leaky_relu(rows[0], slope) + rows[1]; },
                     {meet(along(uses[0], "att_src"), along(uses[1], "att_dst"), call),
                      call.context.factors[step_]},
                     {}, call.backend),
            uses[2]};
  }

  Attention second(const at::Tensor& x, const LayerWeights& weights, const LayerCall& call) const {
    const auto in = split_uses(x, 2, call.backend);
    const auto left =
        split_uses(apply_linear(in[0], weights, prefix_ + "lin_l", call.backend), 2, call.backend);
    const at::Tensor right = apply_linear(in[1], weights, prefix_ + "lin_r", call.backend);
    const double slope = config_.negative_slope;
    return {map_rows(
                [slope](const auto& rows, const auto& vector) {
                  return dots(at::leaky_relu(rows[0], slope), vector[0]) + rows[1];
                },
                {meet(left[0], right, call), call.context.factors[step_]},
                {weights[prefix_ + "att"]}, call.backend),
            left[1]};
  }

  // exp(logit - the largest of its row). A softmax ignores a shift, so the largest logit needs no
  // gradient.
  static at::Tensor powers_of(const at::Tensor& logits, const NeighbourEntries& entries,
                              const Backend& backend) {
    at::Tensor largest;
    {
      const at::NoGradGuard no_graph;
      largest = gather_rows(aggregate_rows(entries.of_row, logits, Aggregation::max, backend),
                            entries.rows(), backend);
    }
    const auto write = [](const auto& rows, at::Tensor& y) {
      at::sub_out(y, rows[0], rows[1]);
      exponentiate(y);
    };
    return map_rows(
        write,
        [write](const auto& rows, const at::Tensor& d_y, auto& d_rows) {
          if (!d_rows[0].defined()) return;
          write(rows, d_rows[0]);
          d_rows[0].mul_(d_y);
        },
        {logits, largest}, logits.size(2), backend);
  }

  GatConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> read_gat(ConfigNode block, const LayerPosition& position) {
  GatConfig config;
  config.second_version = block.text("layer", "gat") == "gatv2";
  block.require("width");
  config.width = block.integer("width", 64, {1, kMaxWidth});
  config.heads = block.integer("heads", 1, {1, kMaxWidth});
  if (config.inner() > kMaxWidth) {
    block.mistake("heads", "times width is more than " + std::to_string(kMaxWidth));
    config.heads = 1;
  }
  config.concat = block.choice("join", "concat", {"concat", "mean"}) == "concat";
  config.directions = read_directions(block);
  config.negative_slope = block.number("negative_slope", 0.2, {0, 1});
  config.activation = read_activation_key(block);
  return std::make_shared<Gat>(config, position);
}

}  // namespace tpudist
