#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "models/inputs/graph_columns.hpp"
#include "models/layers/activation.hpp"
#include "models/layers/linear_start.hpp"
#include "schema/feature_schema.hpp"

namespace tpudist {

// Transform of features before a network uses them.
enum class FeatureTransform {
  raw,
  log,           // sign(x) * log1p|x|
  log_positive,  // log1p(max(x, 0))
  standardised,  // (x - mean) / SD over the member's training graphs; a constant column gives 0
  min_max,       // (x - min) / (max - min) over the same; a constant column gives 0
};

// Whether a transform uses FeatureStatistics.
inline bool takes_statistics(FeatureTransform transform) {
  return transform == FeatureTransform::standardised || transform == FeatureTransform::min_max;
}

// `model.encoder:` The state of a row before the first layer:
//
//       act(Linear [opcode embedding | node features | state])
//
// where the node features may first go through a Linear of their own; with `width` 0 it is [opcode
// embedding | node features | state] itself. Dimension features and random walks are node features
// that no transform changes.
struct EncoderConfig {
  std::int64_t opcode_width = 12;  // columns of the opcode embedding; 0: graphs have no opcodes
  std::int64_t node_width = 20;    // Linear over the node features; 0: none
  std::int64_t width = 32;         // output width of the Linear over all; 0: none
  FeatureTransform node_transform = FeatureTransform::log;
  std::vector<std::int64_t> node_columns;  // of node_feat; empty: all
  // log(1 + x mod 128) and log(1 + x div 128) of each of the schema's dimension columns.
  bool dimension_features = false;
  GraphColumns columns;  // what the readout needs of them is set by it
  FeatureTransform config_transform = FeatureTransform::raw;
  double config_scale = 1;  // factor of a configuration's features after their transform
  // Width of an embedding of the integers -2 to 5 (0: off). It takes the schema's layout columns,
  // whose padding is -1, and the values of a layout configuration, which are -2 at nodes without
  // one.
  std::int64_t code_width = 0;
  bool early_join = true;  // the state is joined before the first layer
  LinearStart start;
  Activation activation = Activation::relu;

  // For graphs of this schema: what it lacks is a mistake, or left out where only `start` has it.
  static EncoderConfig read(ConfigNode node, const EncoderConfig& start,
                            const FeatureSchema& schema);
  // Whether a fused operator of the CPU supports this encoder (models/inputs/fused_encoder.hpp).
  bool is_plain() const;
};

}  // namespace tpudist
