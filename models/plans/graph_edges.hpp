#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan_shape.hpp"

namespace tpudist {

// Neighbours of every node in one direction, parallel edges as often as they stand, sorted.
struct Adjacency {
  std::vector<std::int64_t> begin;   // [n + 1]
  std::vector<std::int32_t> source;  // the nodes that a node takes from
  std::span<const std::int32_t> of(std::int32_t node) const {
    return std::span(source).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};

// The edges of one graph in both directions.
struct GraphEdges {
  // `edges` [m, 2] (consumer, producer), ends in 0 .. nodes - 1.
  GraphEdges(std::int64_t nodes, std::span<const std::int32_t> edges);
  // What an edge set of this direction takes from.
  const Adjacency& of(EdgeDirection direction) const {
    return direction == EdgeDirection::consumer_to_producer ? to_producer : to_consumer;
  }
  std::int64_t nodes;
  Adjacency to_producer, to_consumer;
};

// Nodes whose state before layer 0 .. depth (depth = behind the last) depends on the configuration,
// in node order: the configurable ones (all where `config_nodes` is empty), then whatever takes
// from one of them.
std::vector<std::vector<std::int32_t>> reached_nodes(const GraphEdges& edges,
                                                     std::span<const std::int32_t> config_nodes,
                                                     const PlanShape& shape);

// For each node the last layer 0 .. depth (depth = behind the last) before which its state takes
// part in the differences between the scores of a slate; -1: in none. It does in all layers before
// that one too. `reached`: the nodes that configurations reach behind the last layer.
std::vector<std::int32_t> needed_levels(const GraphEdges& edges,
                                        std::span<const std::int32_t> reached,
                                        const PlanShape& shape);

}  // namespace tpudist
