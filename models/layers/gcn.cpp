#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

enum class Normalise { symmetric, right, right_sum };

struct GcnConfig {
  std::int64_t width = 0;
  std::vector<EdgeKind> directions;
  Normalise normalise = Normalise::symmetric;
  bool self_loops = true;
  Activation activation = Activation::relu;
};

// Whether these are two directions along the same edges.
bool are_opposite(const std::vector<EdgeKind>& directions) {
  using enum EdgeKind;
  const std::vector<EdgeKind> graph{consumer_to_producer, producer_to_consumer},
      config{config_consumer_to_producer, config_producer_to_consumer};
  return std::ranges::is_permutation(directions, graph) ||
         std::ranges::is_permutation(directions, config);
}

class Gcn : public Layer {
 public:
  Gcn(const GcnConfig& config, const LayerPosition& position)
      : Layer(position, "gcn"), config_(config) {}

  std::string description() const override {
    static const char* const normalised[] = {", ", ", right-normalised, ",
                                             ", right-normalised and transposed, "};
    return "gcn " + std::to_string(channels()) + direction_text(config_.directions) +
           normalised[static_cast<int>(config_.normalise)] +
           (config_.self_loops ? "" : "no self-loops, ") + activation_name(config_.activation);
  }
  std::int64_t channels() const override { return config_.width * parts(); }
  std::vector<LayerShape> steps() const override {
    const LayerShape step{config_.directions, Aggregation::sum, false};
    if (config_.normalise == Normalise::right) return {step};
    LayerShape counting = step;
    if (config_.normalise == Normalise::right_sum) counting.edge_kinds.resize(1);
    return {counting, step};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    for (int part = 0; part < parts(); ++part) {
      entries.push_back(linear_weight(prefix_ + weight_of(part), in_, config_.width));
      entries.back().initialiser.kind = Initialiser::Kind::xavier;
      entries.push_back(linear_bias(prefix_ + bias_of(part), in_, config_.width));
      entries.back().initialiser = {Initialiser::Kind::constant, 0};
    }
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    const auto sets = static_cast<int>(config_.directions.size());
    network.add_step({parts() * product_work(in_, config_.width), 0, 0, channels(),
                      two_steps() ? 0 : sets, two_steps() ? 0 : config_.width});
    if (two_steps()) network.add_step({0, 0, 0, 2 * config_.width, sets, config_.width});
  }

  // The factors of the rows, one column each: D^-1/2 of all directions, or D^-1 of each, or of the
  // first.
  void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const override {
    for (auto step = static_cast<std::size_t>(step_); step < step_ + steps().size(); ++step) {
      std::vector<std::vector<double>> all;
      for (const EdgeSet& edges : plan.layers[step]->edges)
        all.push_back(neighbour_counts(*plan.layers[step], edges));
      std::vector<double> factors;
      for (std::size_t row = 0; row < all[0].size(); ++row) {
        double sum = 0;
        for (const std::vector<double>& counts : all) {
          sum += counts[row];
          if (config_.normalise == Normalise::right) factors.push_back(inverse(counts[row]));
        }
        if (config_.normalise == Normalise::symmetric) factors.push_back(std::sqrt(inverse(sum)));
        if (config_.normalise == Normalise::right_sum) factors.push_back(inverse(all[0][row]));
      }
      context.factors[step] = at::tensor(factors, at::kDouble).to(dtype).view({1, -1, parts()});
    }
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const at::Tensor y = config_.normalise == Normalise::symmetric ? symmetric(x, weights, call)
                         : config_.normalise == Normalise::right
                             ? of_each_direction(x, weights, call)
                             : with_transpose(x, weights, call);
    return activate_rows(y, config_.activation, call.backend);
  }

 private:
  bool two_steps() const { return config_.normalise != Normalise::right; }
  int parts() const { return two_steps() ? 1 : static_cast<int>(config_.directions.size()); }
  static std::string number(int part) { return part == 0 ? "" : "_" + std::to_string(part); }
  static std::string weight_of(int part) { return "lin" + number(part) + ".weight"; }
  static std::string bias_of(int part) { return "bias" + number(part); }
  double inverse(double neighbours) const {
    const double degree = neighbours + (config_.self_loops ? 1 : 0);
    return degree > 0 ? 1 / degree : 0;
  }

  at::Tensor product(const at::Tensor& x, int part, const LayerWeights& weights,
                     const LayerCall& call) const {
    return linear_rows(x, weights[prefix_ + weight_of(part)], at::Tensor(), call.backend);
  }
  // A x of the edge sets first .. first + count - 1.
  at::Tensor sum(const at::Tensor& x, const PlanLayer& step, std::size_t first, std::size_t count,
                 const LayerCall& call) const {
    const int self = config_.self_loops ? 1 : 0;
    const auto uses = split_uses(x, static_cast<int>(count) + self, call.backend);
    std::vector<GatheredTerm> terms;
    if (self) terms.push_back({uses[0], step.self});
    for (std::size_t i = 0; i < count; ++i) {
      const EdgeSet& edges = step.edges[first + i];
      terms.push_back(
          {aggregate_rows(edges.aggregate, uses[self + i], Aggregation::sum, call.backend),
           edges.neighbourhood});
    }
    return sum_of_gathered(terms, call.backend);
  }
  // x times a column of the step's factors, plus the bias.
  at::Tensor scaled(const at::Tensor& x, int step, int part, const LayerWeights& weights,
                    const LayerCall& call) const {
    return map_rows(
        [part](const auto& rows, const auto& bias) {
          return rows[0] * rows[1].narrow(2, part, 1) + bias[0];
        },
        {x, call.context.factors[step]}, {weights[prefix_ + bias_of(part)]}, call.backend);
  }

  at::Tensor symmetric(const at::Tensor& x, const LayerWeights& weights,
                       const LayerCall& call) const {
    const PlanLayer &counting = *call.plan.layers[step_], &adding = *call.plan.layers[step_ + 1];
    const at::Tensor own =
        map_rows([](const auto& rows, const auto&) { return rows[0] * rows[1]; },
                 {gather_rows(product(x, 0, weights, call), counting.self, call.backend),
                  call.context.factors[step_]},
                 {}, call.backend);
    return scaled(sum(own, adding, 0, adding.edges.size(), call), step_ + 1, 0, weights, call);
  }

  at::Tensor of_each_direction(const at::Tensor& x, const LayerWeights& weights,
                               const LayerCall& call) const {
    const std::vector<at::Tensor> uses = split_uses(x, parts(), call.backend);
    std::vector<at::Tensor> all;
    for (int part = 0; part < parts(); ++part) {
      all.push_back(scaled(sum(product(uses[part], part, weights, call), *call.plan.layers[step_],
                               static_cast<std::size_t>(part), 1, call),
                           step_, part, weights, call));
    }
    return parts() == 1 ? all[0] : join_channels(all, call.backend);
  }

  // The second direction reverses the edges of the first one, so neighbours are divided by their
  // own degrees before they are added.
  at::Tensor with_transpose(const at::Tensor& x, const LayerWeights& weights,
                            const LayerCall& call) const {
    const PlanLayer &counting = *call.plan.layers[step_], &adding = *call.plan.layers[step_ + 1];
    const at::Tensor own = gather_rows(product(x, 0, weights, call), counting.self, call.backend);
    const std::vector<at::Tensor> uses = split_uses(own, 3, call.backend);
    const at::Tensor divided =
        map_rows([](const auto& rows, const auto&) { return rows[0] * rows[1]; },
                 {uses[0], call.context.factors[step_]}, {}, call.backend);
    const at::Tensor first = scaled(sum(uses[1], adding, 0, 1, call), step_ + 1, 0, weights, call);
    return sum_of_gathered(
        {{first, {}}, {sum(divided, adding, 1, 1, call), {}}, {uses[2], adding.self}},
        call.backend);
  }

  GcnConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> read_gcn(ConfigNode block, const LayerPosition& position) {
  GcnConfig config;
  block.require("width");
  config.width = block.integer("width", 64, {1, kMaxWidth});
  config.directions = read_directions(block, true);
  const std::string normalise =
      block.choice("normalise", "symmetric", {"symmetric", "right", "right_sum"});
  config.normalise = normalise == "symmetric" ? Normalise::symmetric
                     : normalise == "right"   ? Normalise::right
                                              : Normalise::right_sum;
  if (config.normalise == Normalise::right_sum && !are_opposite(config.directions)) {
    block.mistake("directions",
                  "must be both for normalise: right_sum, which takes the first one "
                  "and its transpose");
    config.normalise = Normalise::right;
  }
  config.self_loops = block.boolean("self_loops", true);
  config.activation = read_activation_key(block);
  return std::make_shared<Gcn>(config, position);
}

}  // namespace tpudist
