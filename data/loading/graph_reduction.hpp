#pragma once

#include <string>

#include "schema/graph.hpp"

namespace tpudist {

// In which direction nodes are reached from a configurable node: along edges both ways, only from
// consumers to producers, or only from producers to consumers.
enum class ReachDirection { both, to_producer, to_consumer };

// Which edges between kept nodes are kept.
enum class KeptEdges { touching_config, all };

// `data.reduce`: the part of a layout graph that networks see. With hops 1, direction both and
// touching_config it equals that of the 1st place of "Fast or Slow?".
struct GraphReduction {
  bool wanted = false;  // false: graphs are unchanged
  int hops = 1;         // largest number of edges between a kept node and a configurable one
  ReachDirection direction = ReachDirection::both;
  KeptEdges edges = KeptEdges::touching_config;  // touching_config: an end of the edge, or both, is
                                                 // configurable

  bool operator==(const GraphReduction&) const = default;
};

// As text, e.g. "config_neighbours, 1 hop both ways, edges touching_config"; "none".
std::string to_text(const GraphReduction& reduction);

// The part of a graph that a reduction keeps: nodes, edges and configurable nodes in their order,
// the nodes renumbered. node_splits are dropped, since they refer to the whole graph. Throws
// DataError when no node is configurable.
Graph reduced_graph(const Graph& graph, const GraphReduction& reduction);

}  // namespace tpudist
