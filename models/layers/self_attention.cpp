#include "models/layers/layers.hpp"

#include <fmt/format.h>

#include <limits>

#include "models/operators/attend_nodes.hpp"
#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

// The sums of a configuration in linear attention are heads x width x width numbers.
constexpr std::int64_t kMostLinearWidth = 512;

struct AttentionConfig {
  bool linear = false;  // without a softmax; then `others` is 1, and there are no directions
  std::int64_t width = 0, heads = 1;
  std::int64_t max_nodes = std::numeric_limits<std::int64_t>::max();
  double others = 1;
  std::vector<EdgeKind> directions;
  bool bias = true;
  Activation activation = Activation::none;

  std::string name() const { return linear ? "linear_attention" : "self_attention"; }
};

// Attention of each node to all nodes of its configuration.
class AttentionLayer : public Layer {
 public:
  AttentionLayer(const AttentionConfig& config, const LayerPosition& position)
      : Layer(position, config.name()), config_(config) {}

  std::string description() const override {
    return fmt::format("{} {} {} x {}{}, {}", config_.name(), config_.heads,
                       config_.heads == 1 ? "head" : "heads", config_.width,
                       config_.linear ? ""
                                      : fmt::format(", others {}{}", config_.others,
                                                    direction_text(config_.directions)),
                       activation_name(config_.activation));
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
    for (const char* name : {"query", "key", "value"})
      add_linear(entries, prefix_ + name, in_, channels(), config_.bias);
    return entries;
  }
  // A neighbourhood is all nodes, whose number is unknown here. Linear attention counts each row
  // before once; softmax attention leaves out its pairs of nodes.
  void add_work(NetworkWork& network) const override {
    const double product =
        config_.linear ? 2.0 * static_cast<double>(channels() * (config_.width + 1)) : 0;
    network.add_step({3 * product_work(in_, channels()) + product, 0, product, 4 * channels(),
                      1 + static_cast<int>(config_.directions.size())});
  }
  void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const override {
    context.attention[step_] =
        std::make_unique<NodeAttention>(*plan.layers[step_], config_.others, dtype);
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const Backend& backend = call.backend;
    const std::vector<at::Tensor> uses = split_uses(x, 3, backend);
    const auto linear = [&](std::size_t use, const char* name) {
      return apply_linear(uses[use], weights, prefix_ + name, backend, config_.bias);
    };
    const auto attend = config_.linear ? attend_linearly : attend_nodes;
    const at::Tensor query =
        gather_rows(linear(0, "query"), call.plan.layers[step_]->self, backend);
    return activate_rows(attend(query, linear(1, "key"), linear(2, "value"),
                                *call.context.attention[step_], config_.heads, backend),
                         config_.activation, backend);
  }

 private:
  AttentionConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> read_attention(ConfigNode block, const LayerPosition& position) {
  AttentionConfig config;
  const bool linear = block.text("layer", "self_attention") == "linear_attention";
  config.linear = linear;
  block.require("width");
  config.width = block.integer("width", 64, {1, linear ? kMostLinearWidth : kMaxWidth});
  config.heads = block.integer("heads", 1, {1, kMaxWidth});
  if (config.heads * config.width > kMaxWidth) {
    block.mistake("heads", "times width is more than " + std::to_string(kMaxWidth));
    config.heads = 1;
  }
  if (!linear) {
    config.others = block.number("others", 0.1, {1e-6, 1});
    config.directions =
        read_directions(block, false, {"consumer_to_producer", "producer_to_consumer"});
    config.max_nodes = block.integer("max_nodes", 1000, {1, 20000});
  }
  config.bias = block.boolean("bias", true);
  config.activation = read_activation_key(block, "none");
  return std::make_shared<AttentionLayer>(config, position);
}

}  // namespace tpudist
