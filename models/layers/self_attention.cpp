#include "models/layers/layers.hpp"

#include <fmt/format.h>

#include "models/layers/activate.hpp"
#include "models/layers/directions.hpp"
#include "models/layers/linear_start.hpp"
#include "models/operators/attend_nodes.hpp"
#include "models/operators/linear_rows.hpp"
#include "models/operators/sparse_rows.hpp"
#include "models/operators/split_uses.hpp"

namespace tpudist {
namespace {

struct SelfAttentionConfig {
  std::int64_t width = 0, heads = 1, max_nodes = 1000;
  double others = 0.1;
  std::vector<EdgeKind> directions;
  bool bias = true;
  Activation activation = Activation::none;
};

class SelfAttention : public Layer {
 public:
  SelfAttention(const SelfAttentionConfig& config, const LayerContext& place)
      : config_(config),
        prefix_(place.prefix + "self_attention."),
        in_(place.channels),
        step_(place.step) {}

  std::string description() const override {
    return fmt::format("self_attention {} {} x {}, others {}{}, {}", config_.heads,
                       config_.heads == 1 ? "head" : "heads", config_.width, config_.others,
                       direction_text(config_.directions),
                       activation_names()[static_cast<std::size_t>(config_.activation)]);
  }
  std::int64_t channels() const override { return config_.heads * config_.width; }
  std::vector<LayerShape> steps() const override {
    LayerShape shape{{EdgeKind::nodes}, Aggregation::sum, false};
    shape.edge_kinds.insert(shape.edge_kinds.end(), config_.directions.begin(),
                            config_.directions.end());
    return {shape};
  }
  std::int64_t most_nodes() const override { return config_.max_nodes; }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    for (const char* name : {"query", "key", "value"}) {
      entries.push_back(linear_weight(prefix_ + name + ".weight", in_, channels()));
      if (config_.bias) entries.push_back(linear_bias(prefix_ + name + ".bias", in_, channels()));
    }
    return entries;
  }
  // The pairs of nodes, whose number is not known here, are left out.
  void add_work(NetworkWork& network) const override {
    network.steps.push_back({3 * product_work(in_, channels()), 0, 0, 4 * channels(),
                             1 + static_cast<int>(config_.directions.size())});
  }
  void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const override {
    const auto step = static_cast<std::size_t>(step_);
    context.attention[step] =
        std::make_unique<NodeAttention>(*plan.layers[step], config_.others, dtype);
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const Backend& backend = call.backend;
    const std::vector<at::Tensor> uses = split_uses(x, 3, backend);
    const auto linear = [&](std::size_t use, const std::string& name) {
      return linear_rows(uses[use], weights[prefix_ + name + ".weight"],
                         config_.bias ? weights[prefix_ + name + ".bias"] : at::Tensor(), backend);
    };
    const at::Tensor query =
        gather_rows(linear(0, "query"), call.plan.layers[step_]->self, backend);
    return activate_rows(attend_nodes(query, linear(1, "key"), linear(2, "value"),
                                      *call.context.attention[step_], config_.heads, backend),
                         config_.activation, backend);
  }

 private:
  SelfAttentionConfig config_;
  std::string prefix_;
  std::int64_t in_;
  int step_;
};

}  // namespace

std::shared_ptr<const Layer> read_self_attention(ConfigNode block, const LayerContext& place) {
  SelfAttentionConfig config;
  block.require("width");
  config.width = block.integer("width", 64, {1, kMaxWidth});
  config.heads = block.integer("heads", 1, {1, kMaxWidth});
  if (config.heads * config.width > kMaxWidth) {
    block.mistake("heads", "times width is more than " + std::to_string(kMaxWidth));
    config.heads = 1;
  }
  config.others = block.number("others", 0.1, {1e-6, 1});
  config.directions =
      read_directions(block, false, {"consumer_to_producer", "producer_to_consumer"});
  config.max_nodes = block.integer("max_nodes", 1000, {1, 20000});
  config.bias = block.boolean("bias", true);
  config.activation = activation_of(block.choice("activation", "none", activation_names()));
  return std::make_shared<SelfAttention>(config, place);
}

}  // namespace tpudist
