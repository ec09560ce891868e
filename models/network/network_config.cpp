#include "models/network/network_config.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "models/layers/layers.hpp"
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

std::int64_t most_nodes_of(const Layer& layer) {
  std::int64_t most = layer.most_nodes();
  for (const auto& inner : layer.inner()) most = std::min(most, most_nodes_of(*inner));
  return most;
}

void read_blocks(ConfigNode model, const FeatureSchema& schema, NetworkConfig& network) {
  LayerPosition position;
  const Encoder encoder(network.encoder, schema);
  position.channels = encoder.channels();
  if (position.channels > kMaxWidth) {
    model.child("encoder").mistake("width", "0 would give " + std::to_string(position.channels) +
                                                " channels: at most " + std::to_string(kMaxWidth) +
                                                " are allowed");
    position.channels = kMaxWidth;
  }
  position.state_channels = encoder.state_channels();
  auto blocks = read_layers(model.items("blocks"), "blocks.", position);
  if (!blocks.empty()) {
    network.blocks = std::move(blocks);
    return;
  }
  network.set_sage(network.sage_layers(), schema);  // of a preset, on this encoder
  if (!network.blocks.empty()) return;
  network.set_sage(sage_stack({64}, false), schema);
  model.mistake("preset", "give a preset, or blocks: [{layer: sage, width: 64}, ...]");
}

struct NamedPool {
  const char* name;
  Pool pool;
};
const NamedPool kPools[] = {
    {"sum", Aggregation::sum},
    {"mean", Aggregation::mean},
    {"max", Aggregation::max},
    {"l2_sum", {Aggregation::sum, false, true}},
    {"config_sum", {Aggregation::sum, true}},
    {"config_mean", {Aggregation::mean, true}},
    {"config_l2_sum", {Aggregation::sum, true, true}},
};

// What to pool, e.g. "mean" or "max+mean".
std::vector<Pool> read_pools(ConfigNode readout) {
  std::vector<std::string> names;
  for (const NamedPool& pool : kPools) names.emplace_back(pool.name);
  std::vector<Pool> pools;
  for (const std::string& name : readout.joined_words("pool", "sum", names))
    pools.push_back(std::ranges::find(kPools, name, &NamedPool::name)->pool);
  return pools;
}

void read_violations(ConfigNode readout, const FeatureSchema& schema, NetworkConfig& network) {
  const std::vector<std::string> tensors = {"none", "output", "input", "kernel"},
                                 unset = {"skip", "fits", "violates"};
  const auto chosen = [&](const char* key, const std::vector<std::string>& names) {
    const std::string name = readout.choice(key, names.front(), names);
    return std::ranges::find(names, name) - names.begin();
  };
  const auto tensor = chosen("violation_ratio", tensors);
  if (tensor == 0) {
    for (const char* key : {"violation_order", "violation_unset"})
      if (readout.has(key))
        readout.mistake(key, "is of a violation ratio: set violation_ratio, or leave it out");
    return;
  }
  ViolationRatio ratio;
  ratio.tensor = static_cast<LayoutTensor>(tensor - 1);
  ratio.minor_to_major = chosen("violation_order", {"minor_to_major", "major_to_minor"}) == 0;
  ratio.unset = static_cast<ViolationRatio::Unset>(chosen("violation_unset", unset));
  const int width = schema.layout_columns.count;
  if (schema.tile || width == 0 || schema.dimension_columns.count != width || width > 24 ||
      schema.config_features < static_cast<int>(tensor) * width) {
    readout.mistake("violation_ratio",
                    "needs configurations that are layouts, with as many layout_columns as "
                    "dimension_columns in the schema: set it to none for this collection");
    return;
  }
  network.encoder.columns.largest = true;
  network.encoder.columns.tensor = ratio.tensor;
  network.head.violations = ratio;
}

void read_readout(ConfigNode readout, const FeatureSchema& schema, NetworkConfig& network) {
  network.pools = read_pools(readout);
  network.head.widths = readout.integers("widths", network.head.widths, {1, kMaxWidth});
  network.head.config_widths =
      readout.integers("config_widths", network.head.config_widths, {1, kMaxWidth});
  network.head.joins_config = readout.boolean("join_config", network.head.joins_config);
  if (network.head.joins_config && !network.head.config_widths.empty())
    readout.mistake("join_config", "give either this or config_widths, an MLP in between");
  network.head.bias = readout.boolean("bias", network.head.bias);
  read_violations(readout, schema, network);
  const std::string& activation = activation_name(network.head.activation);
  network.head.activation =
      activation_of(readout.choice("activation", activation, activation_names()));
  network.output_scale = readout.number("scale", network.output_scale, {1e-12, 1e12});
}

}  // namespace

const char* Pool::name() const {
  return std::ranges::find(kPools, *this, &NamedPool::pool)->name;
}

bool Pool::is_affine() const {
  return aggregation != Aggregation::max && !l2 &&
         !(of_config_nodes && aggregation == Aggregation::mean);
}

NetworkConfig NetworkConfig::preset(const std::string& name) {
  NetworkConfig network;
  if (name == "latenciaga_xla") {
    network.set_sage(sage_stack({64, 64, 128, 128, 256, 256}, false));
    return network;
  }
  network.encoder.width = 64;
  if (name == "latenciaga_nlp") {
    network.set_sage(sage_stack({256, 256, 256, 256, 512, 512, 512, 512}, true));
    return network;
  }
  if (name == "latenciaga_tile") {
    network.set_sage(sage_stack({256, 256, 256, 256, 512, 512, 512, 512}, false));
    network.output_scale = 1;
    return network;
  }
  throw ConfigError("model.preset: there is no network " + name +
                    "; known are latenciaga_xla, latenciaga_nlp, latenciaga_tile");
}

NetworkConfig NetworkConfig::read(ConfigNode model, const FeatureSchema& schema) {
  NetworkConfig network;
  const std::string name = model.choice(
      "preset", "none", {"none", "latenciaga_xla", "latenciaga_nlp", "latenciaga_tile"});
  if (name != "none") network = preset(name);
  network.encoder = EncoderConfig::read(model.child("encoder"), network.encoder, schema);
  read_blocks(model, schema, network);
  read_readout(model.child("readout"), schema, network);
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
  return encoder.early_join || head.takes_config() ||
         std::ranges::any_of(
             blocks, [&](const auto& block) { return std::ranges::any_of(block->steps(), joins); });
}

void NetworkConfig::set_sage(const std::vector<SageConfig>& layers, const FeatureSchema& schema) {
  blocks.clear();
  LayerPosition position;
  position.channels = Encoder(encoder, schema).channels();
  for (const SageConfig& layer : layers) {
    position.prefix = "blocks." + std::to_string(blocks.size()) + ".";
    blocks.push_back(make_sage(layer, position));
    position.channels = blocks.back()->channels();
    ++position.step;
  }
}

std::vector<SageConfig> NetworkConfig::sage_layers() const {
  std::vector<SageConfig> layers;
  for (const auto& block : blocks) {
    const SageConfig* config = sage_config_of(*block);
    if (!config || !config->is_plain()) return {};
    layers.push_back(*config);
  }
  return layers;
}

bool NetworkConfig::is_sage_stack() const {
  const bool plain_pool =
      pools == std::vector<Pool>{Aggregation::sum} || pools == std::vector<Pool>{Aggregation::mean};
  return !sage_layers().empty() && encoder.is_plain() && plain_pool && head.widths.empty() &&
         head.bias && !head.takes_config() && !head.violations;
}

bool NetworkConfig::has_head_of_nodes() const {
  return pools == std::vector<Pool>{Aggregation::sum} && head.widths.empty() &&
         !head.takes_config() && !head.violations;
}

bool NetworkConfig::adds_up_rows() const {
  return head.widths.empty() && !head.violations && std::ranges::all_of(pools, &Pool::is_affine);
}

bool NetworkConfig::reads_config_nodes() const {
  return head.violations || std::ranges::any_of(pools, &Pool::of_config_nodes);
}

std::int64_t NetworkConfig::most_nodes() const {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const auto& block : blocks) most = std::min(most, most_nodes_of(*block));
  return most;
}

bool NetworkConfig::drops() const {
  return std::ranges::any_of(blocks, [](const auto& block) { return block->drops() > 0; });
}

PlanShape NetworkConfig::plan_shape() const {
  PlanShape shape;
  shape.early_join = encoder.early_join;
  for (const auto& block : blocks) {
    shape.per_element = shape.per_element || is_per_element(*block);
    for (LayerShape& step : block->steps()) shape.layers.push_back(std::move(step));
  }
  if (reads_config_nodes()) shape.layers.push_back({{}, Aggregation::sum, true});
  if (is_composed()) return shape;
  // The fused operators take means by the weights of the plan.
  const std::vector<SageConfig> layers = sage_layers();
  for (std::size_t i = 0; i < layers.size(); ++i) shape.layers[i] = layers[i].mix;
  shape.mean_readout = pools[0].aggregation == Aggregation::mean;
  return shape;
}

NetworkWork NetworkConfig::work(const FeatureSchema& schema) const {
  NetworkWork work;
  const Encoder inputs(encoder, schema);
  inputs.add_work(work);
  work.skips_unneeded = adds_up_rows();
  for (const auto& block : blocks) block->add_work(work);
  if (reads_config_nodes()) work.add_step({0, 0, 0, blocks.back()->channels(), 0});
  for (const Pool& pool : pools) {  // the rows of configurable nodes alone
    if (pool.of_config_nodes)
      work.steps.back().kept.behind += static_cast<double>(blocks.back()->channels());
  }
  return work;
}

}  // namespace tpudist
