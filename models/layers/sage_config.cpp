#include "models/layers/sage_config.hpp"

#include <string>

#include "models/layers/directions.hpp"
#include "models/layers/linear_start.hpp"

namespace tpudist {

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
  config.activation = activation_of(block.choice("activation", "relu", activation_names()));
  return config;
}

}  // namespace tpudist
