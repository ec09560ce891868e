#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// The neighbours of every node in one direction of the edges. Each list is sorted, and lists a
// neighbour once per parallel edge.
struct Adjacency {
  Array<std::int64_t> begin;   // [nodes + 1] into `source`
  Array<std::int32_t> source;  // [edges] the neighbours of the nodes
  // The neighbours of one node.
  std::span<const std::int32_t> of(std::int32_t node) const {
    return std::span(source).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};

// Neighbour lists in both directions of some edges.
struct NeighbourLists {
  Adjacency to_producer;  // for each producer its consumers
  Adjacency to_consumer;  // for each consumer its producers
};

// The edges of one graph as neighbour lists. Immutable.
struct GraphEdges : NeighbourLists {
  // `edges` is [m, 2] (consumer, producer), and so are `config_edges` (Graph::config_edges). Every
  // entry must be in 0 .. nodes - 1; the constructor does not check this.
  GraphEdges(std::int64_t nodes, std::span<const std::int32_t> edges,
             std::span<const std::int32_t> config_edges = {});
  // The neighbours of each node in an edge set of this kind, which must run along the graph.
  const Adjacency& of(EdgeKind kind) const { return lists_of(*this, config, kind); }
  // The same, given the lists of edges and of config edges.
  static const Adjacency& lists_of(const NeighbourLists& edges, const NeighbourLists& config,
                                   EdgeKind kind) {
    switch (kind) {
      case EdgeKind::consumer_to_producer:
        return edges.to_producer;
      case EdgeKind::config_consumer_to_producer:
        return config.to_producer;
      case EdgeKind::config_producer_to_consumer:
        return config.to_consumer;
      default:
        return edges.to_consumer;
    }
  }
  std::int64_t nodes;
  NeighbourLists config;  // of the config edges
};

// The kind of the same edges in the other direction.
inline EdgeKind reversed(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::consumer_to_producer:
      return EdgeKind::producer_to_consumer;
    case EdgeKind::producer_to_consumer:
      return EdgeKind::consumer_to_producer;
    case EdgeKind::config_consumer_to_producer:
      return EdgeKind::config_producer_to_consumer;
    case EdgeKind::config_producer_to_consumer:
      return EdgeKind::config_consumer_to_producer;
    default:
      return kind;
  }
}

// Whether an edge set of this kind runs along the edges or config edges of the graph.
inline bool along_graph(EdgeKind kind) {
  return kind != EdgeKind::nodes && kind != EdgeKind::configs;
}

// Returns, for each layer 0 .. depth (depth: after the last), the nodes whose state before it
// depends on the configuration, ascending. A join of states reaches `config_nodes` (all nodes if
// empty). Each layer adds the nodes that have a reached node as a neighbour.
std::vector<std::vector<std::int32_t>> reached_nodes(const GraphEdges& edges,
                                                     std::span<const std::int32_t> config_nodes,
                                                     const PlanShape& shape);

// Returns for each node [nodes] the last layer 0 .. depth (depth: after the last) before which its
// state influences the differences between the scores of a slate; -1: none. Its states before all
// earlier layers influence them too. `reached`: the nodes that configurations reach after the last
// layer.
std::vector<std::int32_t> needed_levels(const GraphEdges& edges,
                                        std::span<const std::int32_t> reached,
                                        const PlanShape& shape);

}  // namespace tpudist
