#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include <span>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

class Sage : public Layer {
 public:
  Sage(const SageConfig& config, const LayerPosition& position)
      : Layer(position, "sage"), config_(config) {}

  const SageConfig& config() const { return config_; }

  std::string description() const override {
    static const char* const aggregations[] = {"mean", "sum", "max"};
    std::string text = "sage " + std::to_string(channels()) + ", " +
                       aggregations[static_cast<int>(config_.mix.aggregation)];
    text += direction_text(config_.mix.edge_kinds);
    if (config_.shared) text += ", shared";
    if (config_.normalise) text += ", L2 normalised";
    if (adds_input()) text += ", residual";
    return text + ", " + activation_name(config_.activation);
  }
  std::int64_t channels() const override { return config_.channels(); }
  // The operators divide for the mean; the plan contains multiplicities.
  std::vector<LayerShape> steps() const override {
    const bool max = config_.mix.aggregation == Aggregation::max;
    return {{config_.mix.edge_kinds, max ? Aggregation::max : Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    const auto add = [&](const std::string& name, const std::string& torch, bool bias) {
      entries.push_back(linear_weight(prefix_ + name + ".weight", in_, config_.width));
      entries.back().torch_name = prefix_ + torch + ".weight";
      if (!bias) return;
      entries.push_back(linear_bias(prefix_ + name + ".bias", in_, config_.width));
      entries.back().torch_name = prefix_ + torch + ".bias";
    };
    for (std::size_t set = 0; set < (config_.shared ? 1 : sets()); ++set)
      add(name_of("neighbours", set), name_of("lin_l", set), bias_with(set));
    for (std::size_t part = 0; part < (config_.concat ? sets() : 1); ++part)
      add(name_of("self", part), name_of("lin_r", part), sets() == 0);
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    const double product = product_work(in_, config_.width);
    // Kept besides: the sum before activation and norm, and what `concat` joins.
    const int sums = (config_.activation != Activation::none) + config_.normalise + config_.concat;
    network.add_step({product * (config_.concat ? static_cast<double>(sets()) : 1.0), product, 0,
                      channels(), static_cast<int>(sets()), in_},
                     {.neighbourhood = static_cast<double>(in_),
                      .behind = static_cast<double>(sums * channels())});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const PlanLayer& step = *call.plan.layers[step_];
    // One use of x for each convolution and its edge sets, and one for the residual.
    const int convolutions = config_.concat ? static_cast<int>(sets()) : 1;
    std::vector<at::Tensor> uses = split_uses(
        x, convolutions + static_cast<int>(sets()) + (adds_input() ? 1 : 0), call.backend);
    at::Tensor y;
    if (config_.concat) {
      std::vector<at::Tensor> parts;
      for (std::size_t set = 0; set < sets(); ++set)
        parts.push_back(convolve({uses.begin() + static_cast<std::ptrdiff_t>(2 * set), 2}, weights,
                                 call, {set}, set));
      y = join_channels(parts, call.backend);
    } else {
      std::vector<std::size_t> all(sets());
      for (std::size_t set = 0; set < sets(); ++set) all[set] = set;
      y = convolve(uses, weights, call, all, 0);
    }
    if (config_.normalise) y = normalise_l2(y, call.backend);
    if (adds_input()) y = sum_of_gathered({{y, {}}, {uses.back(), step.self}}, call.backend);
    return activate_rows(y, config_.activation, call.backend);
  }

 private:
  std::size_t sets() const { return config_.mix.edge_kinds.size(); }
  bool adds_input() const { return config_.residual && in_ == channels(); }
  // Without `concat` the single bias belongs to the first direction.
  bool bias_with(std::size_t set) const { return set == 0 || config_.concat; }
  static std::string name_of(const std::string& name, std::size_t number) {
    return number == 0 ? name : name + "_" + std::to_string(number);
  }

  // One SAGEConv over these edge sets. Products come before the rows are gathered, so each is
  // computed once for all rows that share it. `x`: one use for the rows themselves, and one for
  // every edge set.
  at::Tensor convolve(std::span<const at::Tensor> x, const LayerWeights& weights,
                      const LayerCall& call, const std::vector<std::size_t>& edge_sets,
                      std::size_t part) const {
    const PlanLayer& step = *call.plan.layers[step_];
    const std::string self = prefix_ + name_of("self", part);
    const at::Tensor self_bias = sets() == 0 ? weights[self + ".bias"] : at::Tensor();
    std::vector<GatheredTerm> terms{
        {linear_rows(x[0], weights[self + ".weight"], self_bias, call.backend), step.self}};
    for (std::size_t i = 0; i < edge_sets.size(); ++i) {
      const std::size_t set = edge_sets[i];
      const std::string name = prefix_ + name_of("neighbours", config_.shared ? 0 : set);
      const EdgeSet& edges = step.edges[set];
      const at::Tensor around =
          aggregate_rows(edges.aggregate, x[i + 1], config_.mix.aggregation, call.backend);
      terms.push_back(
          {linear_rows(around, weights[name + ".weight"],
                       bias_with(set) ? weights[name + ".bias"] : at::Tensor(), call.backend),
           edges.neighbourhood});
    }
    return sum_of_gathered(terms, call.backend);
  }

  SageConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> make_sage(const SageConfig& config, const LayerPosition& position) {
  return std::make_shared<Sage>(config, position);
}

std::shared_ptr<const Layer> read_sage(ConfigNode block, const LayerPosition& position) {
  return make_sage(read_sage_config(block), position);
}

const SageConfig* sage_config_of(const Layer& layer) {
  const auto* sage = dynamic_cast<const Sage*>(&layer);
  return sage ? &sage->config() : nullptr;
}

}  // namespace tpudist
