#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// The neighbours of every node in one direction of the edges. Each list is sorted; a neighbour
// along parallel edges is listed once per edge.
struct Adjacency {
  Array<std::int64_t> begin;   // [nodes + 1] into `source`
  Array<std::int32_t> source;  // [edges] the neighbours of the nodes
  // The neighbours of one node.
  std::span<const std::int32_t> of(std::int32_t node) const {
    return std::span(source).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};

// The edges of one graph as neighbour lists in both directions. Immutable.
struct GraphEdges {
  // `edges` is [m, 2] (consumer, producer). Every entry must be in 0 .. nodes - 1, which is not
  // checked here.
  GraphEdges(std::int64_t nodes, std::span<const std::int32_t> edges);
  // The neighbours of each node in an edge set of this kind, which must run along the edges of the
  // graph.
  const Adjacency& of(EdgeKind kind) const {
    return kind == EdgeKind::consumer_to_producer ? to_producer : to_consumer;
  }
  std::int64_t nodes;
  Adjacency to_producer;  // for each producer its consumers
  Adjacency to_consumer;  // for each consumer its producers
};

// Whether an edge set of this kind runs along the edges of the graph.
inline bool along_graph(EdgeKind kind) {
  return kind == EdgeKind::consumer_to_producer || kind == EdgeKind::producer_to_consumer;
}

// Returns, for each layer 0 .. depth (depth: after the last), the nodes whose state before it
// depends on the configuration, ascending. Where states are joined these are `config_nodes` (all
// nodes if it is empty). Each layer adds the nodes that have one of them as a neighbour.
std::vector<std::vector<std::int32_t>> reached_nodes(const GraphEdges& edges,
                                                     std::span<const std::int32_t> config_nodes,
                                                     const PlanShape& shape);

// Returns, for each node, the last layer 0 .. depth (depth: after the last) before which its state
// influences the differences between the scores of a slate, or -1 if it never does. Its states
// before all earlier layers influence them too. `reached`: the nodes that configurations reach
// after the last layer. [nodes]
std::vector<std::int32_t> needed_levels(const GraphEdges& edges,
                                        std::span<const std::int32_t> reached,
                                        const PlanShape& shape);

}  // namespace tpudist
