#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/schema/graph.hpp"

namespace tpudist {

// How `data.segments` cuts graphs: into ranges of consecutive nodes of nearly equal size, or by
// METIS (metis_segments).
enum class SegmentCut { none, consecutive, metis };

// `data.reduce`: the part of a layout graph that networks see. With hops 1, direction both and
// touching_config, this is the part that the 1st place of "Fast or Slow?" used.
struct GraphReduction {
  // How a configurable node reaches others: along edges both ways, only from consumers to
  // producers, or only from producers to consumers.
  enum class Direction { both, to_producer, to_consumer };
  // Which edges between kept nodes stay: those with a configurable end, or all.
  enum class Edges { touching_config, all };
  // How to draw max_nodes nodes of a larger graph: a window of consecutive nodes, or any nodes.
  enum class Sample { window, random };

  bool wanted = false;  // false: graphs are opened whole
  int hops = 1;         // largest number of edges between a kept node and a configurable one
  Direction direction = Direction::both;
  Edges edges = Edges::touching_config;
  // A slate sees at most this many nodes, drawn for it (drawn_nodes); 0: all.
  std::int64_t max_nodes = 0;
  Sample sample = Sample::window;
  double config_weight = 1;  // random: weight of a configurable node; other nodes have 1

  // `data.segments`: opening a graph leaves out edges between segments. A training step sees one
  // segment of a slate's graph (GraphDraw).
  SegmentCut segments = SegmentCut::none;
  std::int64_t segment_nodes = 1000;  // largest size of a segment

  bool gradient_only = false;  // only drawn nodes are trained; all are seen (GraphDraw)

  // Not a key of `data`. True if a layer of the network takes Graph::config_edges; opening then
  // makes these edges from the whole graph.
  bool config_edges = false;

  // Whether training draws nodes of a graph with `nodes` nodes.
  bool draws(std::int64_t nodes) const { return max_nodes > 0 && nodes > max_nodes; }
  // The reduction for scoring graphs.
  GraphReduction scored() const;
  // The number of nodes that a slate sees of a graph with `nodes` nodes.
  std::int64_t seen(std::int64_t nodes) const {
    return draws(nodes) && !gradient_only ? max_nodes : nodes;
  }
  bool operator==(const GraphReduction&) const = default;
};

// As text, e.g. "config_neighbours, 1 hop both ways, edges touching_config"; "none".
std::string to_text(const GraphReduction& reduction);

// Limits for one graph: on its config edges, because n configurable nodes can have n (n - 1) / 2 of
// them, and on the edges that the search for them follows, because each configurable node can reach
// every edge.
inline constexpr std::int64_t kMostConfigEdges = 1 << 20, kMostFollowedEdges = 1 << 28;

// Returns Graph::config_edges of a graph. Throws DataError above these limits.
std::vector<std::int32_t> config_edges_of(const Graph& graph);

// The part of a graph that a reduction keeps on opening: nodes, edges and configurable nodes in
// their order, the nodes renumbered. If nodes are dropped, node_splits are too, since they refer to
// the whole graph. Throws DataError if no node is configurable, and as config_edges_of.
Graph reduced_graph(Graph graph, const GraphReduction& reduction);

// Draws max_nodes nodes of a larger graph and returns them ascending. The draw is a function of the
// nodes, the configurable nodes and `key`. At least one drawn node is configurable, since all
// configurations of a part without one are equal.
// window: uniform among the windows with a configurable node.
// random: without replacement, each draw in proportion to the weights (Efraimidis and Spirakis,
// "Weighted random sampling with a reservoir", 2006): the nodes with the smallest -log(u) / weight,
// with uniform u. If no drawn node is configurable, the configurable node with the smallest value
// replaces the drawn node with the largest.
std::vector<std::int32_t> drawn_nodes(const Graph& graph, const GraphReduction& reduction,
                                      std::uint64_t key);

// For each segment with a configurable node, in order, its nodes, ascending. Other segments score
// all configurations alike.
std::vector<std::vector<std::int32_t>> configurable_segments(const Graph& graph);

// A part of a graph.
struct GraphPart {
  std::vector<std::int32_t> nodes;          // [n'] kept nodes, ascending
  std::vector<std::int32_t> edges;          // [m', 2] (consumer, producer), numbers in `nodes`
  std::vector<std::int32_t> config_nodes;   // [nc'] numbers in `nodes`
  std::vector<std::int32_t> config_places;  // [nc'] indices in the graph's config_nodes
  std::vector<std::int32_t> config_edges;   // [p', 2] as `edges`
};

// The part with these nodes, which are ascending. It keeps those of `edges` [m, 2], and of the
// graph's config edges, that connect two of these nodes.
GraphPart part_of(const Graph& graph, std::vector<std::int32_t> nodes,
                  std::span<const std::int32_t> edges);

}  // namespace tpudist
