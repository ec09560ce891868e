#include "models/network/network_config.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "models/inputs/graph_input.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kMaxWidth = 16384;

SageConfig sage(std::int64_t width, bool residual) {
  SageConfig layer;
  layer.width = width;
  layer.mix.edge_kinds = {EdgeKind::consumer_to_producer};
  layer.residual = residual;
  return layer;
}

std::vector<SageConfig> sage_stack(std::initializer_list<std::int64_t> widths, bool residual) {
  std::vector<SageConfig> layers;
  for (const std::int64_t width : widths) layers.push_back(sage(width, residual));
  return layers;
}

const std::vector<std::string> kDefaultDirections = {"consumer_to_producer"};

void read_block(ConfigNode block, std::vector<SageConfig>& layers) {
  block.choice("layer", "sage", {"sage"});
  block.require("width");
  SageConfig layer =
      sage(block.integer("width", 64, {1, kMaxWidth}), block.boolean("residual", false));
  layer.mix.edge_kinds.clear();
  for (const std::string& direction : block.texts("directions", kDefaultDirections)) {
    if (direction == "consumer_to_producer") {
      layer.mix.edge_kinds.push_back(EdgeKind::consumer_to_producer);
    } else if (direction == "producer_to_consumer") {
      layer.mix.edge_kinds.push_back(EdgeKind::producer_to_consumer);
    } else {
      block.mistake("directions",
                    "must hold consumer_to_producer or producer_to_consumer, not " + direction);
    }
  }
  const std::string aggregation = block.choice("aggregation", "mean", {"mean", "sum", "max"});
  layer.mix.aggregation = aggregation == "mean"  ? Aggregation::mean
                          : aggregation == "sum" ? Aggregation::sum
                                                 : Aggregation::max;
  const bool relu = block.choice("activation", "relu", {"relu", "none"}) == "relu";
  layer.activation = relu ? Activation::relu : Activation::none;
  layers.insert(layers.end(), block.integer("repeat", 1, {1, 64}), layer);
}

}  // namespace

NetworkConfig NetworkConfig::preset(const std::string& name) {
  NetworkConfig network;
  if (name == "latenciaga_xla") {
    network.layers = sage_stack({64, 64, 128, 128, 256, 256}, false);
    return network;
  }
  network.encoder.width = 64;
  if (name == "latenciaga_nlp") {
    network.layers = sage_stack({256, 256, 256, 256, 512, 512, 512, 512}, true);
    return network;
  }
  if (name == "latenciaga_tile") {
    network.layers = sage_stack({256, 256, 256, 256, 512, 512, 512, 512}, false);
    network.output_scale = 1;
    return network;
  }
  throw ConfigError("model.preset: there is no network " + name +
                    "; known are latenciaga_xla, latenciaga_nlp, latenciaga_tile");
}

NetworkConfig NetworkConfig::read(ConfigNode model) {
  NetworkConfig network;
  const std::string name = model.choice(
      "preset", "none", {"none", "latenciaga_xla", "latenciaga_nlp", "latenciaga_tile"});
  if (name != "none") network = preset(name);

  ConfigNode encoder = model.child("encoder");
  EncoderConfig& widths = network.encoder;
  widths.opcode_width = encoder.integer("opcode_width", widths.opcode_width, {1, kMaxWidth});
  widths.node_width = encoder.integer("node_width", widths.node_width, {1, kMaxWidth});
  widths.width = encoder.integer("width", widths.width, {1, kMaxWidth});

  std::vector<SageConfig> layers;
  for (ConfigNode block : model.items("blocks")) read_block(block, layers);
  if (!layers.empty()) network.layers = std::move(layers);
  if (network.layers.empty()) {
    network.layers = sage_stack({64}, false);
    model.mistake("preset", "give a preset, or blocks: [{layer: sage, width: 64}, ...]");
  }

  ConfigNode readout = model.child("readout");
  network.mean_readout =
      readout.choice("pool", network.mean_readout ? "mean" : "sum", {"sum", "mean"}) == "mean";
  network.output_scale = readout.number("scale", network.output_scale, {1e-12, 1e12});
  return network;
}

PlanShape NetworkConfig::plan_shape() const {
  PlanShape shape;
  for (const SageConfig& layer : layers) shape.layers.push_back(layer.mix);
  shape.mean_readout = mean_readout;
  return shape;
}

NetworkWidths NetworkConfig::widths(std::int64_t config_features) const {
  NetworkWidths widths{kNodeFeatures,   encoder.node_width, encoder.opcode_width,
                       config_features, encoder.width,      {}};
  for (const SageConfig& layer : layers)
    widths.layers.push_back({layer.width, static_cast<int>(layer.mix.edge_kinds.size())});
  return widths;
}

}  // namespace tpudist
