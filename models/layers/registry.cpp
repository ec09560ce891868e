#include "models/layers/registry.hpp"

#include "models/layers/activation_layer.hpp"
#include "models/layers/channel_attention.hpp"
#include "models/layers/config_attention.hpp"
#include "models/layers/dropout.hpp"
#include "models/layers/gcn.hpp"
#include "models/layers/gin.hpp"
#include "models/layers/group_norm.hpp"
#include "models/layers/join_states.hpp"
#include "models/layers/layer_norm.hpp"
#include "models/layers/linear.hpp"
#include "models/layers/residual.hpp"
#include "models/layers/sage.hpp"

namespace tpudist {
namespace {

struct Entry {
  const char* name;
  std::shared_ptr<const Layer> (*read)(ConfigNode block, const LayerPlace& place);
};

// A further layer is one more line here.
constexpr Entry kLayers[] = {
    {"sage", read_sage},
    {"gcn", read_gcn},
    {"gin", read_gin},
    {"linear", read_linear},
    {"activation", read_activation},
    {"residual", read_residual},
    {"layer_norm", read_layer_norm},
    {"instance_norm", read_instance_norm},
    {"graph_norm", read_graph_norm},
    {"channel_attention", read_channel_attention},
    {"config_attention", read_config_attention},
    {"dropout", read_dropout},
    {"join_config", read_join_states},
};

}  // namespace

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kLayers) names.push_back(entry.name);
  return names;
}

std::shared_ptr<const Layer> read_layer(ConfigNode block, LayerPlace& place) {
  const std::string name = block.choice("layer", "sage", layer_names());
  for (const Entry& entry : kLayers) {
    if (name != entry.name) continue;
    auto layer = entry.read(block, place);
    place.channels = layer->channels();
    place.step += static_cast<int>(layer->steps().size());
    place.drops += layer->drops();
    return layer;
  }
  return nullptr;  // choice() returned one of the names
}

std::vector<std::shared_ptr<const Layer>> read_layers(std::vector<ConfigNode> blocks,
                                                      const std::string& list, LayerPlace& place) {
  std::vector<std::shared_ptr<const Layer>> layers;
  for (ConfigNode block : blocks) {
    const std::int64_t repeat = block.integer("repeat", 1, {1, 64});
    for (std::int64_t i = 0; i < repeat; ++i) {
      place.prefix = list + std::to_string(layers.size()) + ".";
      layers.push_back(read_layer(block, place));
    }
  }
  return layers;
}

}  // namespace tpudist
