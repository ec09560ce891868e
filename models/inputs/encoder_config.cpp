#include "models/inputs/encoder_config.hpp"

#include <algorithm>

#include "core/config/yaml_scalar.hpp"

namespace tpudist {
namespace {

const std::vector<std::string> kTransforms = {"raw", "log", "log_positive", "standardised",
                                              "min_max"};

FeatureTransform read_transform(ConfigNode node, const char* key, FeatureTransform fallback) {
  const std::string name =
      node.choice(key, kTransforms[static_cast<std::size_t>(fallback)], kTransforms);
  return static_cast<FeatureTransform>(std::ranges::find(kTransforms, name) - kTransforms.begin());
}

// Columns as a list of numbers and ranges, e.g. "0-133" or "0-20,30".
std::vector<std::int64_t> read_columns(ConfigNode node, int most) {
  const std::string text = node.text("node_columns", "all");
  std::vector<std::int64_t> columns;
  if (text == "all") return columns;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    const std::size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
    if (first.error || last.error || first.value < 0 || last.value < first.value ||
        last.value >= most) {
      node.mistake("node_columns", "must be `all` or numbers and ranges below " +
                                       std::to_string(most) + ", such as 0-" +
                                       std::to_string(most - 1));
      return {};
    }
    for (std::int64_t column = first.value; column <= last.value; ++column)
      columns.push_back(column);
    at = comma + 1;
  }
  std::vector<std::int64_t> sorted = columns;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    node.mistake("node_columns", "names a column twice");
  return columns;
}

// Without opcodes there is nothing to embed, even if a preset says otherwise.
std::int64_t read_opcode_width(ConfigNode node, const EncoderConfig& start,
                               const FeatureSchema& schema) {
  const std::int64_t usual = schema.opcodes > 0 ? start.opcode_width : 0,
                     width = node.integer("opcode_width", usual, {0, kMaxWidth});
  if (width > 0 && schema.opcodes == 0) {
    node.mistake("opcode_width",
                 "embeds opcodes, and the graphs of this collection have none: leave it out");
  } else if (width == 0 && schema.opcodes > 0) {
    node.mistake("opcode_width", "must be at least 1: the graphs of this collection have opcodes");
  }
  return width;
}

}  // namespace

EncoderConfig EncoderConfig::read(ConfigNode node, const EncoderConfig& start,
                                  const FeatureSchema& schema) {
  EncoderConfig config = start;
  config.opcode_width = read_opcode_width(node, start, schema);
  config.node_transform = read_transform(node, "node_transform", start.node_transform);
  config.node_columns = read_columns(node, schema.node_features);
  config.columns.walk_steps =
      static_cast<int>(node.integer("random_walk", start.columns.walk_steps, {0, 64}));
  config.columns.walk_loops = node.boolean("random_walk_loops", start.columns.walk_loops);
  if (config.columns.walk_loops && config.columns.walk_steps == 0)
    node.mistake("random_walk_loops", "is of random walks, and random_walk is 0 steps: set it");
  config.dimension_features = node.boolean("dimension_features", start.dimension_features);
  if (config.dimension_features && schema.dimension_columns.count == 0) {
    node.mistake("dimension_features",
                 "are made of dimensions, and the schema of this collection names no "
                 "dimension_columns: leave it out, or name them in schema.yaml and convert again");
    config.dimension_features = false;
  }
  config.node_width = node.integer("node_width", start.node_width, {0, kMaxWidth});
  config.config_transform = read_transform(node, "config_transform", start.config_transform);
  config.code_width = node.integer("code_width", start.code_width, {0, kMaxWidth});
  if (config.code_width > 0 && schema.layout_columns.count == 0) {
    node.mistake(
        "code_width",
        "embeds layouts, and the schema of this collection names no layout_columns: set it "
        "to 0, or name them in schema.yaml and convert again");
    config.code_width = 0;
  }
  config.early_join = node.choice("join", "early", {"early", "late"}) == "early";
  config.config_scale = node.number("config_scale", start.config_scale, {1e-12, 1e12});
  config.width = node.integer("width", start.width, {0, kMaxWidth});
  config.start = LinearStart::read(node);
  const Activation after = config.width ? start.activation : Activation::none;
  const std::string& activation = activation_name(after);
  config.activation = activation_of(node.choice("activation", activation, activation_names()));
  if (config.width == 0 && (config.activation != Activation::none || config.start.xavier))
    node.mistake("width", "0 means no linear layer, which has no activation and no initial values");
  return config;
}

bool EncoderConfig::is_plain() const {
  return opcode_width > 0 && node_transform == FeatureTransform::log && node_columns.empty() &&
         node_width > 0 && config_transform == FeatureTransform::raw && config_scale == 1 &&
         !dimension_features && columns.count() == 0 && code_width == 0 && early_join &&
         width > 0 && !start.xavier && activation == Activation::relu;
}

}  // namespace tpudist
