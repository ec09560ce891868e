#include "models/network/network_config.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "models/layers/registry.hpp"
#include "models/layers/sage.hpp"
#include "models/network/composed_network.hpp"

namespace tpudist {
namespace {

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

// Whether a layer, or a layer inside it, treats every (node, configuration) differently.
bool is_per_element(const Layer& layer) {
  return layer.per_element() ||
         std::ranges::any_of(layer.inner(), [](const auto& own) { return is_per_element(*own); });
}

// Takes the blocks as plain SAGE layers where all of them are.
void set_blocks(std::vector<std::shared_ptr<const Layer>> blocks, NetworkConfig& network) {
  network.layers.clear();
  network.blocks.clear();
  for (const auto& block : blocks) {
    const SageConfig* config = sage_config_of(*block);
    if (!config || !config->is_plain()) {
      network.layers.clear();
      network.blocks = std::move(blocks);
      return;
    }
    network.layers.push_back(*config);
  }
}

void read_blocks(ConfigNode model, std::int64_t config_features, NetworkConfig& network) {
  LayerContext place;
  place.channels = network.encoder.width;
  place.state_channels = Encoder(network.encoder, config_features).state_channels();
  auto blocks = read_layers(model.items("blocks"), "blocks.", place);
  if (!blocks.empty()) set_blocks(std::move(blocks), network);
  if (!network.layers.empty() || !network.blocks.empty()) return;
  network.layers = sage_stack({64}, false);
  model.mistake("preset", "give a preset, or blocks: [{layer: sage, width: 64}, ...]");
}

// What to pool, e.g. "mean" or "max+mean".
std::vector<Aggregation> read_pools(ConfigNode readout, const std::string& fallback) {
  const std::string text = readout.text("pool", fallback);
  std::vector<Aggregation> pools;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t plus = std::min(text.find('+', at), text.size());
    const std::string name = text.substr(at, plus - at);
    if (name != "sum" && name != "mean" && name != "max") {
      readout.mistake("pool",
                      "must be sum, mean, max or several of them joined by +, e.g. "
                      "max+mean, not " +
                          text);
      return {Aggregation::sum};
    }
    pools.push_back(name == "sum"    ? Aggregation::sum
                    : name == "mean" ? Aggregation::mean
                                     : Aggregation::max);
    at = plus + 1;
  }
  return pools;
}

void read_readout(ConfigNode readout, NetworkConfig& network) {
  std::vector<Aggregation> pools = read_pools(readout, network.mean_readout ? "mean" : "sum");
  network.pools.clear();
  if (pools.size() == 1 && pools[0] != Aggregation::max) {
    network.mean_readout = pools[0] == Aggregation::mean;
  } else {
    network.pools = std::move(pools);
  }
  network.head.widths = readout.integers("widths", network.head.widths, {1, kMaxWidth});
  network.head.config_widths =
      readout.integers("config_widths", network.head.config_widths, {1, kMaxWidth});
  const std::string& activation =
      activation_names()[static_cast<std::size_t>(network.head.activation)];
  network.head.activation =
      activation_of(readout.choice("activation", activation, activation_names()));
  network.output_scale = readout.number("scale", network.output_scale, {1e-12, 1e12});
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

NetworkConfig NetworkConfig::read(ConfigNode model, std::int64_t config_features) {
  NetworkConfig network;
  const std::string name = model.choice(
      "preset", "none", {"none", "latenciaga_xla", "latenciaga_nlp", "latenciaga_tile"});
  if (name != "none") network = preset(name);
  network.encoder = EncoderConfig::read(model.child("encoder"), network.encoder);
  read_blocks(model, config_features, network);
  read_readout(model.child("readout"), network);
  network.general = model.choice("engine", "auto", {"auto", "general"}) == "general";
  if (!network.takes_configurations()) {
    model.child("encoder").mistake(
        "join",
        "is late, but nothing takes the configuration later, so that all of a graph would "
        "have one score: put a join_config among model.blocks");
  }
  return network;
}

bool NetworkConfig::takes_configurations() const {
  const auto joins = [](const LayerShape& step) { return step.joins_states; };
  return encoder.early_join || !head.config_widths.empty() ||
         std::ranges::any_of(all_blocks(), [&](const auto& block) {
           return std::ranges::any_of(block->steps(), joins);
         });
}

bool NetworkConfig::is_composed() const {
  return general || !blocks.empty() || !encoder.is_plain() || !pools.empty() ||
         !head.widths.empty() || !head.config_widths.empty();
}

bool NetworkConfig::has_head_of_nodes() const {
  return pools.empty() && !mean_readout && head.widths.empty() && head.config_widths.empty();
}

bool NetworkConfig::adds_up_rows() const {
  return head.widths.empty() && std::ranges::find(pools, Aggregation::max) == pools.end();
}

std::vector<std::shared_ptr<const Layer>> NetworkConfig::all_blocks() const {
  if (!blocks.empty()) return blocks;
  std::vector<std::shared_ptr<const Layer>> made;
  LayerContext place;
  place.channels = encoder.width;
  for (const SageConfig& layer : layers) {
    place.prefix = "blocks." + std::to_string(made.size()) + ".";
    made.push_back(make_sage(layer, place));
    place.channels = made.back()->channels();
    ++place.step;
  }
  return made;
}

PlanShape NetworkConfig::plan_shape() const {
  PlanShape shape;
  if (is_composed()) {
    shape.early_join = encoder.early_join;
    for (const auto& block : all_blocks()) {
      shape.per_element = shape.per_element || is_per_element(*block);
      for (LayerShape& step : block->steps()) shape.layers.push_back(std::move(step));
    }
    return shape;
  }
  for (const SageConfig& layer : layers) shape.layers.push_back(layer.mix);
  shape.mean_readout = mean_readout;
  return shape;
}

NetworkWork NetworkConfig::work(std::int64_t config_features) const {
  NetworkWork work;
  const Encoder inputs(encoder, config_features);
  inputs.add_work(work);
  work.skips_unneeded = adds_up_rows();
  for (const auto& block : all_blocks()) block->add_work(work);
  return work;
}

}  // namespace tpudist
