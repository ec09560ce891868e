#pragma once

#include <algorithm>
#include <vector>

namespace tpudist {

// Which pairs of (node, configuration) the edges of an edge set connect.
enum class EdgeKind {
  consumer_to_producer,  // along the edges of the graph, within a configuration
  producer_to_consumer,  // against the edges of the graph
  // The same two ways along the config edges of the graph (Graph::config_edges).
  config_consumer_to_producer,
  config_producer_to_consumer,
  nodes,    // every node with all nodes of its configuration, including itself
  configs,  // every configuration of a slate with all of them, including itself, at the same node
};

// How the states of a node's neighbours are combined, channel by channel. A node without neighbours
// gets 0.
enum class Aggregation { mean, sum, max };

// Properties of a layer that a plan depends on, for a layer that uses other rows: its edge sets and
// how it combines them.
struct LayerShape {
  std::vector<EdgeKind> edge_kinds;  // one edge set each
  // With `mean` the weights of edge sets along the graph include the divisors. All other weights
  // are multiplicities.
  Aggregation aggregation = Aggregation::mean;
  bool joins_states = false;  // rows after the layer use their configuration's state
  bool operator==(const LayerShape&) const = default;
};

// Properties of a network that a plan depends on.
struct PlanShape {
  std::vector<LayerShape> layers;
  bool mean_readout = false;  // the weights of the readout are 1 / nodes instead of 1
  bool early_join = true;     // rows before the first layer use their configuration's state
  // Layers treat every (node, configuration) differently. This needs a dense plan: all of its rows
  // are then needed, and it records each row's configuration (Plan::config). Refined plans of such
  // a network are for calls without dropout; they are built as if this were false.
  bool per_element = false;

  // Whether a layer has an edge set of this kind.
  bool has(EdgeKind kind) const {
    return std::ranges::any_of(layers, [&](const LayerShape& layer) {
      return std::ranges::count(layer.edge_kinds, kind) > 0;
    });
  }
  // Whether a layer mixes the configurations of a slate: rows then depend on the whole slate.
  bool mixes_configs() const { return has(EdgeKind::configs); }
  bool takes_config_edges() const {
    return has(EdgeKind::config_consumer_to_producer) || has(EdgeKind::config_producer_to_consumer);
  }
};

}  // namespace tpudist
