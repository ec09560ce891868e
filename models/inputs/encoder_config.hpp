#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/layers/layer_config.hpp"
#include "models/plans/graph_edges.hpp"

namespace tpudist {

// A tensor of an operation that a layout configuration orders, in the order of its columns.
enum class LayoutTensor { output, input, kernel };

// The columns that follow node_feat in a network's graphs. They depend on the edges, and nodes are
// equal only if these columns are equal too.
struct GraphColumns {
  int walk_steps = 0;       // return probabilities of 1 .. walk_steps steps
  bool walk_loops = false;  // for walks, each node gets an edge to itself
  // The largest dimensions of `tensor`, as bits: 0 where they are unknown.
  bool largest = false;
  LayoutTensor tensor = LayoutTensor::output;

  int count() const { return walk_steps + (largest ? 1 : 0); }
  // [nodes, count()]. `features` [nodes, F], `edges` [m, 2] (consumer, producer). Throws DataError
  // for a graph whose walks need more than kMostWalkWork.
  std::vector<float> of(std::int64_t nodes, std::span<const float> features,
                        std::span<const std::int32_t> edges, const FeatureSchema& schema) const;
};

// Multiplications that the walks of one graph may take: some ten seconds of one core.
inline constexpr std::int64_t kMostWalkWork = 20'000'000'000;

// The probabilities that a random walk is back at its node after 1 .. `steps` steps, [nodes, steps]
// (PyTorch Geometric's AddRandomWalkPE on the edges of both directions). Parallel edges count;
// `loops` adds an edge from each node to itself. 0 at a node without edges. Exact up to rounding: a
// walk that returns stays within steps / 2 edges. Throws DataError as above.
std::vector<float> return_probabilities(const GraphEdges& edges, int steps, bool loops,
                                        std::int64_t most_work = kMostWalkWork);

// The largest dimensions of each node's tensor as bits, [nodes]; 0: it has none, or they are
// unknown. The order of operands is not known, so several operands must all have the same largest
// dimensions.
std::vector<std::int32_t> largest_dimensions(std::span<const float> features,
                                             const GraphEdges& edges, LayoutTensor tensor,
                                             const FeatureSchema& schema);

// Transform of features before a network uses them.
enum class FeatureTransform {
  raw,
  log,           // sign(x) * log1p|x|
  log_positive,  // log1p(max(x, 0))
  standardised,  // (x - mean) / SD over the member's training graphs; a constant column gives 0
  min_max,       // (x - min) / (max - min) over these graphs; a constant column gives 0
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
  GraphColumns columns;  // the readout adds what it needs
  FeatureTransform config_transform = FeatureTransform::raw;
  double config_scale = 1;  // factor of a configuration's features after their transform
  // Width of an embedding of the integers -2 to 5 (0: off). It takes the schema's layout columns,
  // whose padding is -1, and the values of a layout configuration, which are -2 at nodes without
  // one.
  std::int64_t code_width = 0;
  bool early_join = true;  // the state is joined before the first layer
  LinearStart start;
  Activation activation = Activation::relu;

  // `node` must not name what the schema lacks; what only `start` names of that is left out.
  static EncoderConfig read(ConfigNode node, const EncoderConfig& start,
                            const FeatureSchema& schema);
  // Whether a fused operator of the CPU supports this encoder (models/inputs/fused_encoder.hpp).
  bool is_plain() const;
};

}  // namespace tpudist
