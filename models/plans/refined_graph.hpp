#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/graph_edges.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// Colours of one layer's nodes that no configuration reaches: one row for each colour.
struct StaticLayer {
  std::vector<std::int32_t> colour;  // [n] static row of a node, -1 where configurations reach it
  std::vector<std::int32_t> node;    // [rows] first node of each colour
};

// Sums over neighbours that no configuration reaches: one group for each multiset of colours.
struct StaticGroups {
  std::vector<std::int32_t> of_node;  // [n] group of a node's neighbours, -1 where one is reached
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> source;  // static rows of the layer before, sorted, with repetitions
  std::int64_t size() const { return static_cast<std::int64_t>(begin.size()) - 1; }
};

// What colour refinement knows of a graph before any configuration: adjacency, which nodes
// configurations reach after how many layers, and the refinement of the rest. Made once for each
// graph and network shape. Immutable, thread-safe.
class RefinedGraph {
 public:
  // `node_class` [n]: equal numbers for nodes of equal features and opcode (classes_of_rows), also
  // the input row that a node takes. `config_nodes`: as in PlanSlate; empty: every node is
  // configurable (tile).
  RefinedGraph(std::int64_t nodes, std::span<const std::int32_t> edges,
               std::span<const std::int32_t> config_nodes, std::vector<std::int32_t> node_class,
               const PlanShape& shape);

  std::int64_t nodes() const { return nodes_; }
  const std::vector<std::int32_t>& config_nodes() const { return config_nodes_; }
  const std::vector<std::int32_t>& node_class() const { return node_class_; }
  std::int64_t classes() const { return classes_; }  // node classes are 0 .. classes - 1
  const PlanShape& shape() const { return shape_; }

  // Adjacency of a layer's edge set: what it takes from.
  const Adjacency& adjacency(EdgeDirection direction) const { return edges_.of(direction); }
  // Nodes whose state before layer `layer` (0 .. depth; depth = after the last) depends on the
  // configuration, in node order.
  const std::vector<std::int32_t>& reached(int layer) const { return reached_[layer]; }
  // Number of nodes whose state before layer `layer` takes part in the differences between scores.
  std::int64_t needed_nodes(int layer) const { return needed_nodes_[layer]; }
  const StaticLayer& fixed(int layer) const { return static_[layer]; }
  // What edge set `set` of layer `layer` sums over unreached neighbours.
  const StaticGroups& fixed_groups(int layer, std::size_t set) const {
    return static_groups_[layer][set];
  }

 private:
  void refine_static();
  StaticGroups group_static(int layer, EdgeDirection direction) const;

  std::int64_t nodes_, classes_ = 0;
  std::vector<std::int32_t> config_nodes_, node_class_;
  PlanShape shape_;
  GraphEdges edges_;
  std::vector<std::vector<std::int32_t>> reached_;        // [depth + 1]
  std::vector<std::int64_t> needed_nodes_;                // [depth + 1]
  std::vector<StaticLayer> static_;                       // [depth + 1]
  std::vector<std::vector<StaticGroups>> static_groups_;  // [depth][edge sets]
};

}  // namespace tpudist
