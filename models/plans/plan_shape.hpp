#pragma once

#include <vector>

namespace tpudist {

// Which pairs of (node, configuration) the edges of an edge set join.
enum class EdgeKind {
  consumer_to_producer,  // along the edges of the graph, within a configuration
  producer_to_consumer,  // against them
  nodes,                 // every node with all nodes of its configuration, itself included
  configs,  // every configuration of a slate with all of them, itself included, at the same node
};

// What a node makes of its neighbours' states, channel by channel. A node without neighbours
// gets 0.
enum class Aggregation { mean, sum, max };

// What a plan must know of one layer that looks beyond a row: which edge sets it mixes, and how.
struct LayerShape {
  std::vector<EdgeKind> edge_kinds;  // one edge set for each
  // Mean has the divisors in the weights of the edge sets along the graph. All other weights are
  // multiplicities.
  Aggregation aggregation = Aggregation::mean;
  bool joins_states = false;  // the rows behind the layer take their configuration's state
  bool operator==(const LayerShape&) const = default;
};

// What a plan must know of a network.
struct PlanShape {
  std::vector<LayerShape> layers;
  bool mean_readout = false;  // the weights of the readout are 1 / nodes instead of 1
  bool early_join = true;     // the rows before the first layer take their configuration's state
  // Layers tell every (node, configuration) from all others, which takes a dense plan: all of its rows
  // are needed then, and it says which configuration each belongs to (Plan::config). Refined plans of
  // such a network serve calls without dropout; they are made as if this were false.
  bool per_element = false;

  // Whether a layer mixes the configurations of a slate: its rows depend on the whole slate.
  bool mixes_configs() const {
    for (const LayerShape& layer : layers) {
      for (const EdgeKind kind : layer.edge_kinds) {
        if (kind == EdgeKind::configs) return true;
      }
    }
    return false;
  }
};

}  // namespace tpudist
