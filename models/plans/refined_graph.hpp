#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/graph_edges.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// The colours, before one layer, of the nodes that no configuration reaches yet. Each colour gives
// one row.
struct UnreachedLayer {
  std::vector<std::int32_t> colour;  // [n] colour of a node; -1 where a configuration reaches it
  std::vector<std::int32_t> node;    // [colours] first node of each colour
};

// The neighbourhoods of one edge set in which no configuration reaches any neighbour: one for each
// multiset of colours.
struct UnreachedNeighbourhoods {
  std::vector<std::int32_t> of_node;   // [n]; -1 where a configuration reaches a neighbour
  std::vector<std::int64_t> begin{0};  // [neighbourhoods + 1] into `source`
  // Colours before the layer, sorted, with repetitions; for EdgeKind::configs the one colour stands
  // once, for however many configurations there are.
  std::vector<std::int32_t> source;
  std::int64_t size() const { return static_cast<std::int64_t>(begin.size()) - 1; }
};

// What colour refinement knows of a graph before it sees a configuration: the edges, which nodes
// configurations reach after how many layers, and the colours of all other nodes. It is made once
// for each graph and network shape. Immutable, thread-safe.
class RefinedGraph {
 public:
  // `node_class` [n]: equal numbers for nodes of equal features and opcode (classes_of_rows); the
  // class is also the input row that a node takes. `config_nodes`: as in PlanSlate; empty: every
  // node is configurable (tile). Throws Error when the classes are not one for each node.
  RefinedGraph(std::int64_t nodes, std::span<const std::int32_t> edges,
               std::span<const std::int32_t> config_nodes, std::vector<std::int32_t> node_class,
               const PlanShape& shape);

  std::int64_t nodes() const { return nodes_; }
  const std::vector<std::int32_t>& config_nodes() const { return config_nodes_; }
  const std::vector<std::int32_t>& node_class() const { return node_class_; }
  std::int64_t classes() const { return classes_; }  // node classes are 0 .. classes - 1
  const PlanShape& shape() const { return shape_; }

  // The neighbours that a node takes from in an edge set of this kind, one along the graph's edges.
  const Adjacency& adjacency(EdgeKind kind) const { return edges_.of(kind); }
  // The nodes, in order, whose state before layer `layer` (0 .. depth; depth: behind the last)
  // depends on the configuration.
  const std::vector<std::int32_t>& reached(int layer) const { return reached_[layer]; }
  // How many nodes are needed before layer `layer`: the differences between scores depend on them.
  std::int64_t needed_nodes(int layer) const { return needed_nodes_[layer]; }
  const UnreachedLayer& unreached(int layer) const { return unreached_[layer]; }
  const UnreachedNeighbourhoods& unreached_neighbourhoods(int layer, std::size_t set) const {
    return unreached_neighbourhoods_[layer][set];
  }

 private:
  void refine_unreached();
  UnreachedNeighbourhoods collect_unreached(int layer, EdgeKind kind) const;
  UnreachedNeighbourhoods collect_unreached_graph(int layer) const;
  UnreachedNeighbourhoods collect_unreached_configs(int layer) const;

  std::int64_t nodes_, classes_ = 0;
  std::vector<std::int32_t> config_nodes_, node_class_;
  PlanShape shape_;
  GraphEdges edges_;
  std::vector<std::vector<std::int32_t>> reached_;  // [depth + 1]
  std::vector<std::int64_t> needed_nodes_;          // [depth + 1]
  std::vector<UnreachedLayer> unreached_;           // [depth + 1]
  std::vector<std::vector<UnreachedNeighbourhoods>>
      unreached_neighbourhoods_;  // [depth][edge sets]
};

}  // namespace tpudist
