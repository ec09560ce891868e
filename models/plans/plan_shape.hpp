#pragma once

#include <vector>

namespace tpudist {

enum class EdgeDirection { consumer_to_producer, producer_to_consumer };

// What a node makes of its neighbours' states, channel by channel. A node without neighbours
// gets 0.
enum class Aggregation { mean, sum, max };

// What a plan must know of one message-passing layer: which edge sets it mixes, and how.
struct LayerShape {
  std::vector<EdgeDirection> directions;  // one edge set for each
  Aggregation aggregation = Aggregation::mean;
  bool operator==(const LayerShape&) const = default;
};

// What a plan must know of a network.
struct PlanShape {
  std::vector<LayerShape> layers;
  bool mean_readout = false;  // the weights of the readout are 1 / nodes instead of 1
};

}  // namespace tpudist
