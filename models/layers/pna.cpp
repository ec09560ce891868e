#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

// Aggregations times scalers.
constexpr std::int64_t kAggregates = 12;
// Variances up to this one count as 0, as in PyTorch Geometric: the derivative of the root is not
// bounded there.
constexpr double kLeastVariance = 1e-5;

struct PnaConfig {
  std::int64_t width = 0;
  std::vector<EdgeKind> directions;
  double average_log_degree = 1;
  Activation activation = Activation::relu;
};

// All aggregations of a block with all scalers, [1, n, 12 C], from what the row adds [1, n, C],
// [mean, mean of squares] and [max, -min] of what its neighbours add, each [1, n, 2 C], their number
// and its scaler, each [1, n, 1].
at::Tensor scaled_aggregates(const std::vector<at::Tensor>& rows) {
  const auto means = rows[1].chunk(2, 2), most = rows[2].chunk(2, 2);
  const at::Tensor &count = rows[3], &growth = rows[4];
  const at::Tensor any = (count > 0).to(count.scalar_type()), own = rows[0] * any,
                   variance = (means[1] - means[0] * means[0]).clamp_min(kLeastVariance),
                   deviation = roots(variance).masked_fill(variance <= kLeastVariance, 0);
  const at::Tensor all = at::cat({own + means[0], own + most[0], own - most[1], deviation}, 2);
  return at::cat({all, all * growth, all / growth}, 2);
}

class Pna : public Layer {
 public:
  Pna(const PnaConfig& config, const LayerPosition& position)
      : Layer(position, "pna"), config_(config) {}

  std::string description() const override {
    return "pna " + std::to_string(config_.width) + direction_text(config_.directions) + ", " +
           activation_name(config_.activation);
  }
  std::int64_t channels() const override { return config_.width; }
  std::vector<LayerShape> steps() const override {
    return {{config_.directions, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    for (std::size_t set = 0; set < sets(); ++set)
      add_linear(entries, prefix_ + name_of(set), 2 * in_, in_);
    add_linear(entries, prefix_ + "post", joined(), config_.width);
    add_linear(entries, prefix_ + "lin", config_.width, config_.width);
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    const auto directions = static_cast<double>(sets());
    const double in = directions * static_cast<double>(in_);
    network.add_step(
        {2 * directions * product_work(in_, in_), 0,
         product_work(joined(), config_.width) + product_work(config_.width, config_.width),
         2 * joined() + 2 * config_.width, static_cast<int>(4 * sets()), 4 * in_},
        {.before = 3 * in, .neighbourhood = 2 * static_cast<double>(in_), .behind = 10 * in});
  }

  // The numbers of neighbours, a column for each direction, then their scalers.
  void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const override {
    const PlanLayer& step = *plan.layers[step_];
    std::vector<at::Tensor> columns, scalers;
    for (const EdgeSet& edges : step.edges) {
      std::vector<double> counts = neighbour_counts(step, edges);
      columns.push_back(at::tensor(counts, at::kDouble).to(dtype));
      for (double& count : counts)
        count = std::log1p(std::max(count, 1.0)) / config_.average_log_degree;
      scalers.push_back(at::tensor(counts, at::kDouble).to(dtype));
    }
    columns.insert(columns.end(), scalers.begin(), scalers.end());
    context.factors[step_] = at::stack(columns, 1).unsqueeze(0);
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const PlanLayer& step = *call.plan.layers[step_];
    const auto uses = split_uses(x, 1 + 2 * static_cast<int>(sets()), call.backend);
    std::vector<at::Tensor> parts{gather_rows(uses[0], step.self, call.backend)};
    for (std::size_t set = 0; set < sets(); ++set)
      parts.push_back(aggregates(uses[2 * set + 1], uses[2 * set + 2], set, weights, call));
    const at::Tensor y =
        apply_linear(join_channels(parts, call.backend), weights, prefix_ + "post", call.backend);
    return activate_rows(apply_linear(y, weights, prefix_ + "lin", call.backend),
                         config_.activation, call.backend);
  }

 private:
  std::size_t sets() const { return config_.directions.size(); }
  std::int64_t joined() const {
    return in_ * (1 + kAggregates * static_cast<std::int64_t>(sets()));
  }
  static std::string name_of(std::size_t set) {
    return set == 0 ? "pre" : "pre_" + std::to_string(set);
  }

  at::Tensor aggregates(const at::Tensor& own, const at::Tensor& neighbours, std::size_t set,
                        const LayerWeights& weights, const LayerCall& call) const {
    const PlanLayer& step = *call.plan.layers[step_];
    const EdgeSet& edges = step.edges[set];
    const auto halves = weights[prefix_ + name_of(set) + ".weight"].split(in_, 1);
    const at::Tensor shift = gather_rows(
        linear_rows(own, halves[0], weights[prefix_ + name_of(set) + ".bias"], call.backend),
        step.self, call.backend);
    const auto added =
        split_uses(linear_rows(neighbours, halves[1], at::Tensor(), call.backend), 2, call.backend);
    // `pairs` maps a row to the two values to aggregate, side by side.
    const auto around = [&](const at::Tensor& rows, const RowFunction& pairs,
                            Aggregation aggregation) {
      return gather_rows(aggregate_rows(edges.aggregate, map_rows(pairs, {rows}, {}, call.backend),
                                        aggregation, call.backend),
                         edges.neighbourhood, call.backend);
    };
    const at::Tensor means = around(
        added[0],
        [](const auto& rows, const auto&) {
          return at::cat({rows[0], rows[0] * rows[0]}, 2);
        },
        Aggregation::mean);
    const at::Tensor most = around(
        added[1],
        [](const auto& rows, const auto&) {
          return at::cat({rows[0], -rows[0]}, 2);
        },
        Aggregation::max);
    const auto column = static_cast<std::int64_t>(set), scaler = column + std::ssize(step.edges);
    return map_rows(
        [column, scaler](const auto& rows, const auto&) {
          return scaled_aggregates({rows[0], rows[1], rows[2], rows[3].narrow(2, column, 1),
                                    rows[3].narrow(2, scaler, 1)});
        },
        {shift, means, most, call.context.factors[step_]}, {}, call.backend);
  }

  PnaConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> read_pna(ConfigNode block, const LayerPosition& position) {
  PnaConfig config;
  block.require("width");
  config.width = block.integer("width", 64, {1, kMaxWidth});
  config.directions = read_directions(block, true);
  config.average_log_degree = block.number("average_log_degree", 1, {1e-3, 1e3});
  config.activation = read_activation_key(block);
  return std::make_shared<Pna>(config, position);
}

}  // namespace tpudist
