#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

struct GinConfig {
  std::int64_t width = 0, hidden = 0;
  std::vector<EdgeKind> directions;
  double eps = 0;
  bool train_eps = false, of_edges = false;  // of_edges: GINE
  Activation activation = Activation::relu;

  std::string name() const { return of_edges ? "gine" : "gin"; }
};

class Gin : public Layer {
 public:
  Gin(const GinConfig& config, const LayerPosition& position)
      : Layer(position, config.name()), config_(config) {}

  std::string description() const override {
    return config_.name() + " " + std::to_string(config_.width) + " through " +
           std::to_string(config_.hidden) + ", sum" + direction_text(config_.directions) + ", " +
           activation_name(config_.activation);
  }
  std::int64_t channels() const override { return config_.width; }
  std::vector<LayerShape> steps() const override {
    return {{config_.directions, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    add_linear(entries, prefix_ + "nn.0", in_, config_.hidden);
    add_linear(entries, prefix_ + "nn.2", config_.hidden, config_.width);
    for (std::size_t set = 0; config_.of_edges && set < config_.directions.size(); ++set) {
      entries.push_back(linear_bias(edge_name(set), in_, in_));
      entries.back().initialiser = {Initialiser::Kind::normal};
    }
    if (config_.train_eps) entries.push_back(norm_parameter(prefix_ + "eps", 1, config_.eps));
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    const double first = product_work(in_, config_.hidden);
    const auto in = static_cast<double>(in_), sets = static_cast<double>(config_.directions.size());
    const bool scales = config_.train_eps || config_.eps != 0;
    network.add_step(
        {first, first, product_work(config_.hidden, config_.width), config_.hidden + config_.width,
         static_cast<int>(config_.directions.size()), in_},
        {.before = in * (scales + (config_.of_edges ? sets : 0)),
         .neighbourhood = in,
         .behind = static_cast<double>(config_.hidden + config_.width)});
  }

  // The first product comes before the rows are gathered, so it is computed once for all rows that
  // share it.
  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const PlanLayer& step = *call.plan.layers[step_];
    const at::Tensor weight = weights[prefix_ + "nn.0.weight"];
    std::vector<GatheredTerm> terms{
        {linear_rows(own(x, weights, call), weight, weights[prefix_ + "nn.0.bias"], call.backend),
         step.self}};
    for (std::size_t set = 0; set < step.edges.size(); ++set) {
      const EdgeSet& edges = step.edges[set];
      const at::Tensor around = aggregate_rows(edges.aggregate, message(x, set, weights, call),
                                               Aggregation::sum, call.backend);
      terms.push_back(
          {linear_rows(around, weight, at::Tensor(), call.backend), edges.neighbourhood});
    }
    const at::Tensor hidden =
        activate_rows(sum_of_gathered(terms, call.backend), Activation::relu, call.backend);
    return activate_rows(apply_linear(hidden, weights, prefix_ + "nn.2", call.backend),
                         config_.activation, call.backend);
  }

 private:
  // (1 + eps) x
  at::Tensor own(const RowStates& x, const LayerWeights& weights, const LayerCall& call) const {
    if (config_.train_eps) {
      return map_rows(
          [](const auto& rows, const auto& parameters) {
            return rows[0] * repeat_channels(parameters[0] + 1, rows[0].size(2));
          },
          {x}, {weights[prefix_ + "eps"]}, call.backend);
    }
    if (config_.eps == 0) return x;
    const double factor = 1 + config_.eps;
    return map_rows([factor](const auto& rows, const auto&) { return rows[0] * factor; }, {x}, {},
                    call.backend);
  }

  std::string edge_name(std::size_t set) const {
    return prefix_ + "edge" + (set == 0 ? "" : "_" + std::to_string(set));
  }
  // What each neighbour adds.
  at::Tensor message(const at::Tensor& x, std::size_t set, const LayerWeights& weights,
                     const LayerCall& call) const {
    if (!config_.of_edges) return x;
    return map_rows([](const auto& rows, const auto& edge) { return (rows[0] + edge[0]).relu(); },
                    {x}, {weights[edge_name(set)]}, call.backend);
  }

  GinConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> read_gin(ConfigNode block, const LayerPosition& position) {
  GinConfig config;
  config.of_edges = block.text("layer", "gin") == "gine";
  block.require("width");
  config.width = block.integer("width", 64, {1, kMaxWidth});
  config.hidden = block.integer("hidden", config.width, {1, kMaxWidth});
  config.directions = read_directions(block);
  config.eps = block.number("eps", 0, {-1e6, 1e6});
  config.train_eps = block.boolean("train_eps", false);
  config.activation = read_activation_key(block);
  return std::make_shared<Gin>(config, position);
}

}  // namespace tpudist
