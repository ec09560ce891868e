#include "models/layers/layers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tpudist {
namespace {

struct Entry {
  const char* name;
  std::shared_ptr<const Layer> (*read)(ConfigNode block, const LayerPosition& position);
};

// To add a layer, add a line here.
constexpr Entry kLayers[] = {
    {"sage", read_sage},
    {"gcn", read_gcn},
    {"gat", read_gat},
    {"gatv2", read_gat},
    {"gin", read_gin},
    {"gine", read_gin},
    {"pna", read_pna},
    {"virtual_node", read_virtual_node},
    {"edge_mlp", read_edge_mlp},
    {"self_attention", read_attention},
    {"linear_attention", read_attention},
    {"linear", read_linear},
    {"activation", read_activation},
    {"prelu", read_prelu},
    {"residual", read_residual},
    {"parallel", read_parallel},
    {"layer_norm", read_layer_norm},
    {"l2_norm", read_l2_norm},
    {"instance_norm", read_instance_norm},
    {"graph_norm", read_graph_norm},
    {"channel_attention", read_channel_attention},
    {"config_attention", read_config_attention},
    {"dropout", read_dropout},
    {"join_config", read_join_states},
};

// Most layers of a network, inner layers included.
constexpr int kMostLayers = 1024;

// The registry's line for `layer:`. Null if the name is unknown: a mistake is recorded, and the
// block's other keys are accepted.
const Entry* entry_of(ConfigNode block) {
  const std::string name = block.choice("layer", "sage", layer_names()), kind = block.kind("layer");
  if (kind == "absent" || (kind == "scalar" && block.text("layer", name) == name))
    return std::ranges::find(kLayers, name, &Entry::name);
  for (const std::string& key : block.keys()) block.has(key);
  return nullptr;
}

// Replaces a layer that cannot be made; it keeps the channels.
std::shared_ptr<const Layer> make_placeholder(const LayerPosition& position) {
  SageConfig config;
  config.width = position.channels;
  return make_sage(config, position);
}

}  // namespace

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kLayers) names.push_back(entry.name);
  return names;
}

std::shared_ptr<const Layer> read_layer(ConfigNode block, LayerPosition& position) {
  const Entry* const entry = entry_of(block);
  if (!entry) return make_placeholder(position);
  auto layer = entry->read(block, position);
  if (layer->channels() > kMaxWidth) {
    block.mistake("layer", fmt::format("would give {} channels from {}: at most {} are allowed",
                                       layer->channels(), position.channels, kMaxWidth));
    return make_placeholder(position);
  }
  position.channels = layer->channels();
  position.step += static_cast<int>(layer->steps().size());
  position.drops += layer->drops();
  return layer;
}

Layers read_layers(std::vector<ConfigNode> blocks, const std::string& list,
                   LayerPosition& position) {
  Layers layers;
  for (ConfigNode block : blocks) {
    const std::int64_t repeat = block.integer("repeat", 1, {1, 64});
    for (std::int64_t i = 0; i < repeat; ++i) {
      if (++*position.layers > kMostLayers) {
        // Reported once, for any number of further blocks.
        if (*position.layers == kMostLayers + 1)
          block.mistake("repeat", fmt::format("makes more than {} layers of the model, which is "
                                              "the most that are allowed",
                                              kMostLayers));
        return layers;
      }
      position.prefix = list + std::to_string(layers.size()) + ".";
      layers.push_back(read_layer(block, position));
    }
  }
  return layers;
}

}  // namespace tpudist
