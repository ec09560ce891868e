#pragma once

#include <string>

#include "data/schema/graph.hpp"

namespace tpudist {

// Which nodes within reach of a configurable node are kept: those that it reaches along edges
// either way, from consumers to producers only, or from producers to consumers only.
enum class ReachDirection { both, to_producer, to_consumer };

// Which edges between kept nodes are kept.
enum class KeptEdges { touching_config, all };

// `data.reduce`: the part of a layout graph that networks see. With hops 1, direction both and
// touching_config it is that of the 1st place of "Fast or Slow?".
struct GraphReduction {
  bool wanted = false;  // false: graphs as they are
  int hops = 1;         // most edges between a kept node and a configurable one
  ReachDirection direction = ReachDirection::both;
  KeptEdges edges = KeptEdges::touching_config;  // with a configurable node at one end or both

  bool operator==(const GraphReduction&) const = default;
};

// In words, e.g. "config_neighbours, 1 hop both ways, edges touching_config"; "none".
std::string to_text(const GraphReduction& reduction);

// The part of a graph that a reduction keeps: nodes, edges and configurable nodes in their order,
// the nodes numbered anew. node_splits, which count the nodes of the whole graph, are left out.
// Throws DataError when no node is configurable.
Graph reduced_graph(const Graph& graph, const GraphReduction& reduction);

}  // namespace tpudist
