#include "models/layers/gcn.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "models/layers/activate.hpp"
#include "models/layers/directions.hpp"
#include "models/layers/linear_start.hpp"
#include "models/operators/linear_rows.hpp"
#include "models/operators/map_rows.hpp"
#include "models/operators/sparse_rows.hpp"

namespace tpudist {
namespace {

// 1 / sqrt(1 + number of neighbours) of each row after the layer, [1, rows, 1].
at::Tensor degree_factors(const PlanLayer& step, at::ScalarType dtype) {
  const EdgeSet& edges = step.edges[0];
  const Csr& matrix = edges.aggregate.forward;
  std::vector<double> factors(static_cast<std::size_t>(step.rows_out));
  for (std::int64_t row = 0; row < step.rows_out; ++row) {
    const std::int64_t source = edges.neighbourhood(row) / edges.aggregate.replicas;
    double neighbours = 0;
    for (std::int64_t entry = matrix.begin[source]; entry < matrix.begin[source + 1]; ++entry)
      neighbours += matrix.weight_of(entry);
    factors[static_cast<std::size_t>(row)] = 1 / std::sqrt(1 + neighbours);
  }
  return at::tensor(factors, at::kDouble).to(dtype).view({1, -1, 1});
}

class Gcn : public Layer {
 public:
  Gcn(const LayerContext& place, std::int64_t width, EdgeKind direction, Activation activation)
      : prefix_(place.prefix + "gcn."),
        in_(place.channels),
        width_(width),
        step_(place.step),
        direction_(direction),
        activation_(activation) {}

  std::string description() const override {
    return "gcn " + std::to_string(width_) + direction_text({direction_}) + ", " +
           activation_names()[static_cast<std::size_t>(activation_)];
  }
  std::int64_t channels() const override { return width_; }
  std::vector<LayerShape> steps() const override {
    const LayerShape step{{direction_}, Aggregation::sum, false};
    return {step, step};
  }
  std::vector<ParameterEntry> parameters() const override {
    ParameterEntry weight = linear_weight(prefix_ + "lin.weight", in_, width_),
                   bias = linear_bias(prefix_ + "bias", in_, width_);
    weight.initialiser.kind = Initialiser::Kind::xavier;
    bias.initialiser = {Initialiser::Kind::constant, 0};
    return {weight, bias};
  }
  void add_work(NetworkWork& network) const override {
    network.steps.push_back({product_work(in_, width_), 0, 0, width_, 0});
    network.steps.push_back({0, 0, 0, 2 * width_, 1});
  }

  void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const override {
    for (const auto step : {static_cast<std::size_t>(step_), static_cast<std::size_t>(step_) + 1})
      context.factors[step] = degree_factors(*plan.layers[step], dtype);
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const PlanLayer &counting = *call.plan.layers[step_], &adding = *call.plan.layers[step_ + 1];
    const at::Tensor* const factors = &call.context.factors[step_];
    const at::Tensor product =
        linear_rows(x, weights[prefix_ + "lin.weight"], at::Tensor(), call.backend);
    const at::Tensor scaled =
        map_rows([](const auto& rows, const auto&) { return rows[0] * rows[1]; },
                 {gather_rows(product, counting.self, call.backend), factors[0]}, {}, call.backend);
    const EdgeSet& edges = adding.edges[0];
    const at::Tensor around =
        aggregate_rows(edges.aggregate, scaled, Aggregation::sum, call.backend);
    const at::Tensor sum =
        sum_of_gathered({{scaled, adding.self}, {around, edges.neighbourhood}}, call.backend);
    const at::Tensor y =
        map_rows([](const auto& rows, const auto& bias) { return rows[0] * rows[1] + bias[0]; },
                 {sum, factors[1]}, {weights[prefix_ + "bias"]}, call.backend);
    return activate_rows(y, activation_, call.backend);
  }

 private:
  std::string prefix_;
  std::int64_t in_, width_;
  int step_;
  EdgeKind direction_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> read_gcn(ConfigNode block, const LayerContext& place) {
  block.require("width");
  const std::int64_t width = block.integer("width", 64, {1, kMaxWidth});
  const bool from_consumers =
      block.choice("direction", "consumer_to_producer",
                   {"consumer_to_producer", "producer_to_consumer"}) == "consumer_to_producer";
  return std::make_shared<Gcn>(
      place, width,
      from_consumers ? EdgeKind::consumer_to_producer : EdgeKind::producer_to_consumer,
      activation_of(block.choice("activation", "relu", activation_names())));
}

}  // namespace tpudist
