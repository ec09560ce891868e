#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/schema/feature_schema.hpp"
#include "data/schema/graph.hpp"

namespace tpudist {

// In which direction nodes are reached from a configurable node: along edges both ways, only from
// consumers to producers, or only from producers to consumers.
enum class ReachDirection { both, to_producer, to_consumer };

// Which edges between kept nodes are kept.
enum class KeptEdges { touching_config, all };

// How max_nodes of a larger graph are drawn: a window of consecutive ones, or any.
enum class NodeSample { window, random };

// How `data.segments` cuts graphs: into ranges of consecutive nodes of nearly equal size, by METIS
// (metis_segments), or at the graph's node_splits.
enum class SegmentCut { none, consecutive, metis, node_splits };

// `data.reduce`: the part of a layout graph that networks see. With hops 1, direction both and
// touching_config it equals that of the 1st place of "Fast or Slow?".
struct GraphReduction {
  bool wanted = false;  // false: graphs are opened whole
  int hops = 1;         // largest number of edges between a kept node and a configurable one
  ReachDirection direction = ReachDirection::both;
  KeptEdges edges = KeptEdges::touching_config;  // touching_config: an end of the edge, or both, is
                                                 // configurable
  // Of an opened graph with more nodes a slate sees only so many, drawn for it (drawn_nodes); 0:
  // all.
  std::int64_t max_nodes = 0;
  NodeSample sample = NodeSample::window;
  double config_weight = 1;  // random: weight of a configurable node, of others 1
  double change_weight = 1;  // random: factor of the weight of nodes at a change of layout

  // `data.segments`: edges between segments are left out when the graph is opened. A step of
  // training sees one segment of a slate's graph (GraphDraw).
  SegmentCut segments = SegmentCut::none;
  std::int64_t segment_nodes = 1000;  // consecutive and metis: most nodes of a segment

  bool gradient_only = false;  // the drawn nodes alone are trained; all are seen (GraphDraw)

  // Not of `data`: a layer of the network takes Graph::config_edges, which are made of the whole
  // graph when it is opened.
  bool config_edges = false;

  // Whether nodes are drawn of a graph of so many, in training.
  bool draws(std::int64_t nodes) const { return max_nodes > 0 && nodes > max_nodes; }
  // What of it holds where graphs are scored.
  GraphReduction scored() const;
  // How many nodes a slate sees of a graph of so many.
  std::int64_t seen(std::int64_t nodes) const {
    return draws(nodes) && !gradient_only ? max_nodes : nodes;
  }
  bool operator==(const GraphReduction&) const = default;
};

// As text, e.g. "config_neighbours, 1 hop both ways, edges touching_config"; "none".
std::string to_text(const GraphReduction& reduction);

// The most config edges of a graph: n configurable nodes can have n (n - 1) / 2. And the most edges
// of the graph that are followed to find them: each configurable node can reach all of them.
inline constexpr std::int64_t kMostConfigEdges = 1 << 20, kMostFollowedEdges = 1 << 28;

// Graph::config_edges of a graph. Throws DataError where they would be more, or need more.
std::vector<std::int32_t> config_edges_of(const Graph& graph);

// The part of a graph that a reduction keeps when the graph is opened: nodes, edges and
// configurable nodes in their order, the nodes renumbered. node_splits are dropped where nodes are,
// since they refer to the whole graph.
// Throws DataError when no node is configurable, when node_splits are asked for that there are not,
// or what config_edges_of throws.
Graph reduced_graph(Graph graph, const GraphReduction& reduction);

// [n] 1: the node has an edge to one whose layout differs in at least one of the configurations whose
// states are `states` [K, nc], rows of `table` [S, C]. The layout of a configurable node is the first
// of its features, of another one its columns `layout`; both are minor to major and padded with -1.
// Layouts of different rank are not compared. So these are the nodes at which a copy may be needed.
std::vector<char> layout_changes(const Graph& graph, const ColumnRange& layout,
                                 std::span<const float> table, std::int64_t config_features,
                                 std::span<const std::int32_t> states);

// The max_nodes nodes, ascending, of a graph with more that are drawn with a key: a function of
// nodes, configurable nodes and key. One of them at least is configurable, since all configurations
// of a part without one are equal.
// window: its first node is equally likely each of those whose window has a configurable node.
// random: without replacement, in each draw in proportion to the weights (Efraimidis and Spirakis,
// "Weighted random sampling with a reservoir", 2006): the nodes with the smallest -log(u) / weight,
// where u is uniform. If none is configurable, the configurable one with the smallest takes the
// place of the one with the largest. `changes`: layout_changes; empty: none.
std::vector<std::int32_t> drawn_nodes(const Graph& graph, const GraphReduction& reduction,
                                      std::uint64_t key, std::span<const char> changes = {});

// The nodes, ascending, of each segment of a graph that was cut that has a configurable node, in the
// order of segments: the scores of the others are equal for all configurations.
std::vector<std::vector<std::int32_t>> configurable_segments(const Graph& graph);

// A part of a graph.
struct GraphPart {
  std::vector<std::int32_t> nodes;          // [n'] kept nodes, ascending
  std::vector<std::int32_t> edges;          // [m', 2] (consumer, producer), numbers in `nodes`
  std::vector<std::int32_t> config_nodes;   // [nc'] numbers in `nodes`
  std::vector<std::int32_t> config_places;  // [nc'] their places in the graph's config_nodes
  std::vector<std::int32_t> config_edges;   // [p', 2] as `edges`
};

// The part of these nodes, ascending, and of those of `edges`, [m, 2], and of the graph's config
// edges that connect two of them.
GraphPart part_of(const Graph& graph, std::vector<std::int32_t> nodes,
                  std::span<const std::int32_t> edges);

}  // namespace tpudist
