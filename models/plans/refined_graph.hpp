#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "models/plans/graph_edges.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// The colours, before one layer, of the nodes that no configuration has reached. Each colour gives
// one row.
struct UnreachedLayer {
  Array<std::int32_t> colour;  // [n] colour of a node; -1 if a configuration reaches it
  Array<std::int32_t> node;    // [colours] first node of each colour
};

// The neighbourhoods of one edge set in which no configuration reaches any neighbour: one for each
// different multiset of colours.
struct UnreachedNeighbourhoods {
  Array<std::int32_t> of_node;   // [n]; -1 if a configuration reaches a neighbour
  Array<std::int64_t> begin{0};  // [neighbourhoods + 1] into `source`
  // Colours before the layer, sorted, with repetitions; for EdgeKind::configs the single colour is
  // listed once, for any number of configurations.
  Array<std::int32_t> source;
  std::int64_t size() const { return static_cast<std::int64_t>(begin.size()) - 1; }
};

// The arrays of a RefinedGraph, in own memory or in a file that processes share.
struct RefinedArrays {
  Array<std::int32_t> config_nodes;  // [nc]
  Array<std::int32_t> node_class;    // [n]
  NeighbourLists edges, config_edges;
  std::vector<Array<std::int32_t>> reached;                                    // [depth + 1]
  Array<std::int64_t> needed_nodes;                                            // [depth + 1]
  std::vector<UnreachedLayer> unreached;                                       // [depth + 1]
  std::vector<std::vector<UnreachedNeighbourhoods>> unreached_neighbourhoods;  // [depth][edge sets]

  // All arrays empty, in the numbers that a network of this shape needs.
  static RefinedArrays empty(const PlanShape& shape);

  // Calls body(array) for each array in a fixed order; A is RefinedArrays, const or not.
  template <typename A, typename Body>
  static void for_each(A& arrays, Body&& body) {
    body(arrays.config_nodes);
    body(arrays.node_class);
    for (auto* adjacency : {&arrays.edges.to_producer, &arrays.edges.to_consumer,
                            &arrays.config_edges.to_producer, &arrays.config_edges.to_consumer}) {
      body(adjacency->begin);
      body(adjacency->source);
    }
    for (auto& nodes : arrays.reached) body(nodes);
    body(arrays.needed_nodes);
    for (auto& layer : arrays.unreached) {
      body(layer.colour);
      body(layer.node);
    }
    for (auto& layer : arrays.unreached_neighbourhoods) {
      for (auto& neighbourhoods : layer) {
        body(neighbourhoods.of_node);
        body(neighbourhoods.begin);
        body(neighbourhoods.source);
      }
    }
  }
};

// What colour refinement finds on a graph before any configuration is known: the edges, the nodes
// that configurations reach before each layer, and the colours of all other nodes. Made once for
// each graph and network shape. Immutable, thread-safe.
class RefinedGraph {
 public:
  // `node_class` [n]: equal numbers for nodes of equal features and opcode (classes_of_rows); the
  // class is also the node's input row. `config_nodes`: as in PlanSlate; empty: every node is
  // configurable (tile). Throws Error unless there is one class per node.
  RefinedGraph(std::int64_t nodes, std::span<const std::int32_t> edges,
               std::span<const std::int32_t> config_nodes, Array<std::int32_t> node_class,
               const PlanShape& shape, std::span<const std::int32_t> config_edges = {});
  // Takes the arrays of a graph that was made for this shape. Throws Error if their numbers or
  // lengths do not match.
  RefinedGraph(RefinedArrays arrays, const PlanShape& shape);

  std::int64_t nodes() const { return static_cast<std::int64_t>(arrays_.node_class.size()); }
  const Array<std::int32_t>& config_nodes() const { return arrays_.config_nodes; }
  const Array<std::int32_t>& node_class() const { return arrays_.node_class; }
  std::int64_t classes() const { return classes_; }  // node classes are 0 .. classes - 1
  const PlanShape& shape() const { return shape_; }

  // The neighbours in an edge set of this kind, which must run along the graph.
  const Adjacency& adjacency(EdgeKind kind) const {
    return GraphEdges::lists_of(arrays_.edges, arrays_.config_edges, kind);
  }
  // The nodes, ascending, whose state before layer `layer` (0 .. depth; depth: after the last)
  // depends on the configuration.
  const Array<std::int32_t>& reached(int layer) const { return arrays_.reached[layer]; }
  // Number of nodes needed before layer `layer`: the differences between scores depend on them.
  std::int64_t needed_nodes(int layer) const { return arrays_.needed_nodes[layer]; }
  const UnreachedLayer& unreached(int layer) const { return arrays_.unreached[layer]; }
  const UnreachedNeighbourhoods& unreached_neighbourhoods(int layer, std::size_t set) const {
    return arrays_.unreached_neighbourhoods[layer][set];
  }

  const RefinedArrays& arrays() const { return arrays_; }

 private:
  void count_classes();
  void find_reached(const GraphEdges& edges);
  void refine_unreached();
  UnreachedNeighbourhoods collect_unreached(int layer, EdgeKind kind) const;
  UnreachedNeighbourhoods collect_unreached_graph(int layer) const;
  UnreachedNeighbourhoods collect_unreached_configs(int layer) const;

  std::int64_t classes_ = 0;
  PlanShape shape_;
  RefinedArrays arrays_;
};

}  // namespace tpudist
