#include "models/layers/layer_config.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace tpudist {
namespace {

struct Direction {
  const char* name;
  EdgeKind kind;
  const char* text;
};
constexpr Direction kDirections[] = {
    {"consumer_to_producer", EdgeKind::consumer_to_producer, " from consumers"},
    {"producer_to_consumer", EdgeKind::producer_to_consumer, " from producers"},
    {"config_consumer_to_producer", EdgeKind::config_consumer_to_producer,
     " from configurable consumers"},
    {"config_producer_to_consumer", EdgeKind::config_producer_to_consumer,
     " from configurable producers"},
};

}  // namespace

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names = {
      "none", "relu", "leaky_relu", "gelu", "gelu_tanh", "silu", "elu", "leaky_relu_0.2"};
  return names;
}

Activation activation_of(const std::string& name) {
  const auto found = std::ranges::find(activation_names(), name);
  if (found == activation_names().end())
    throw Error(ErrorKind::failed, "there is no activation " + name);
  return static_cast<Activation>(found - activation_names().begin());
}

const std::string& activation_name(Activation activation) {
  return activation_names()[static_cast<std::size_t>(activation)];
}

Activation read_activation_key(ConfigNode block, const std::string& fallback) {
  return activation_of(block.choice("activation", fallback, activation_names()));
}

LinearStart LinearStart::read(ConfigNode node) {
  LinearStart start;
  start.xavier = node.choice("initialise", "fan_in", {"fan_in", "xavier"}) == "xavier";
  start.bias = node.number("bias_value", 0, {-1e6, 1e6});
  if (!start.xavier && start.bias != 0)
    node.mistake("bias_value", "counts with `initialise: xavier` only");
  return start;
}

void LinearStart::apply(ParameterEntry& weight, ParameterEntry& bias_entry) const {
  if (!xavier) return;
  weight.initialiser.kind = Initialiser::Kind::xavier;
  bias_entry.initialiser = {Initialiser::Kind::constant, bias};
}

std::vector<EdgeKind> read_directions(ConfigNode block, bool some,
                                      const std::vector<std::string>& fallback) {
  std::vector<std::string> names;
  for (const Direction& direction : kDirections) names.emplace_back(direction.name);
  std::vector<EdgeKind> kinds;
  for (const std::string& name : block.words("directions", fallback, names))
    kinds.push_back(std::ranges::find(kDirections, name, &Direction::name)->kind);
  if (some && kinds.empty()) {
    block.mistake("directions", "must hold at least one direction");
    kinds = {EdgeKind::consumer_to_producer};
  }
  return kinds;
}

std::string direction_text(const std::vector<EdgeKind>& directions) {
  std::string text;
  for (const EdgeKind kind : directions)
    text += std::ranges::find(kDirections, kind, &Direction::kind)->text;
  return text;
}

std::vector<double> neighbour_counts(const PlanLayer& step, const EdgeSet& edges) {
  std::vector<double> counts;
  const SparseMatrix& matrix = edges.aggregate;
  for (std::int64_t row = 0; row < step.rows_out; ++row)
    counts.push_back(matrix.forward.total_weight(edges.neighbourhood(row) / matrix.replicas));
  return counts;
}

std::int64_t SageConfig::channels() const {
  return concat ? width * static_cast<std::int64_t>(mix.edge_kinds.size()) : width;
}

bool SageConfig::is_plain() const {
  return !concat && !shared && !normalise &&
         (activation == Activation::relu || activation == Activation::none);
}

SageConfig read_sage_config(ConfigNode block) {
  SageConfig config;
  block.require("width");
  config.width = block.integer("width", 64, {1, kMaxWidth});
  config.residual = block.boolean("residual", false);
  config.mix.edge_kinds = read_directions(block);
  const std::string aggregation = block.choice("aggregation", "mean", {"mean", "sum", "max"});
  config.mix.aggregation = aggregation == "mean"  ? Aggregation::mean
                           : aggregation == "sum" ? Aggregation::sum
                                                  : Aggregation::max;
  const std::string join = block.choice("join", "sum", {"sum", "concat", "shared"});
  config.concat = join == "concat";
  config.shared = join == "shared";
  if (join != "sum" && config.mix.edge_kinds.empty())
    block.mistake("join", "there are no directions to join");
  config.normalise = block.boolean("normalise", false);
  config.activation = read_activation_key(block);
  return config;
}

}  // namespace tpudist
