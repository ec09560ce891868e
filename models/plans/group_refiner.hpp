#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/colour_table.hpp"
#include "models/plans/lane_partitions.hpp"
#include "models/plans/pair_table.hpp"
#include "models/plans/refined_graph.hpp"
#include "models/plans/refined_plan.hpp"

namespace tpudist {

// Lists of rows, one behind the other, with repetitions, each sorted.
struct RowLists {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> row;
  std::int64_t size() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::span<const std::int32_t> of(std::int64_t list) const {
    return std::span(row).subspan(begin[list], begin[list + 1] - begin[list]);
  }
  void close() { begin.push_back(static_cast<std::int64_t>(row.size())); }
};

// A step in the order in which its rows were found.
struct RawStep {
  std::vector<std::int32_t> self;                // [rows] row of the layer before
  std::vector<std::vector<std::int32_t>> group;  // [edge sets][rows]
  std::vector<RowLists> groups;                  // [edge sets]: rows of the layer before
};

// A plan in the order in which its rows were found.
struct RawPlan {
  std::vector<std::int32_t> node, state;  // of the first layer's rows
  std::vector<RawStep> steps;
  // Readout, per group of slates: cells of rows, cells of each lane, rows common to all lanes.
  struct Pool {
    RowLists cells, cells_of_lane, common;
  };
  std::vector<Pool> pools;
};

// Where a slate's input rows, states and configurations begin in the plan's numbering.
struct SlateOffsets {
  std::int64_t node, state, config;
};

// Slates of one graph, refined together: their configurations are the lanes.
struct SlateGroup {
  const RefinedGraph* graph;
  std::vector<std::size_t> slates;
  std::int64_t lanes = 0;
  std::int64_t first_node = 0;  // in the plan's numbering
};

// Refines one group layer by layer. Not thread-safe.
class GroupRefiner {
 public:
  GroupRefiner(const SlateGroup& group, std::span<const RefinedSlate> slates, int hash_bits);

  // Layer 0: colours by (node's class, state's class). Appends the rows' nodes and states.
  void start(std::span<const SlateOffsets> offsets, RawPlan& plan);
  // Next layer; this group's rows of the layer before begin at `base`. Appends to `step`.
  void advance(int layer, std::int64_t base, RawStep& step);
  // The readout of the last layer, whose rows begin at `base`.
  RawPlan::Pool read_out(std::int64_t base) const;
  // Rows of the current layer.
  std::int64_t rows() const {
    return reached_rows_ + static_cast<std::int64_t>(graph_.fixed(layer_).node.size());
  }

 private:
  // Colours of one node: the lanes' partition, and the colour of each of its classes.
  struct NodeColours {
    std::int32_t partition = 0;
    std::int64_t begin = 0;  // into colours_
  };
  // What one edge set brings to one node: the partition of its lanes and the group of each class.
  struct NodeGroups {
    std::int32_t partition = 0;
    std::vector<std::int32_t> group;
  };

  void label_lanes(std::size_t config_index, std::vector<std::int32_t>& labels,
                   std::vector<std::int32_t>& states, std::span<const SlateOffsets> offsets) const;
  // Row of the current layer, counted from this group's first.
  std::int32_t row_of(std::int32_t node, std::int32_t lane) const {
    const std::int32_t fixed = graph_.fixed(layer_).colour[node];
    if (fixed >= 0) return static_cast<std::int32_t>(reached_rows_ + fixed);
    const NodeColours& colours = of_node_[node];
    return colours_[colours.begin + partitions_.class_of_lane(colours.partition)[lane]];
  }
  void start_groups(int layer, std::size_t set, std::int64_t base, RowLists& groups);
  void group_neighbours(int layer, std::size_t set, std::int32_t node, std::int64_t base,
                        RowLists& groups, NodeGroups& result);
  std::int32_t group_of_rows(std::size_t set, std::int64_t base, RowLists& groups);
  void add_static_rows(int layer, std::int64_t base, RawStep& step) const;

  const RefinedGraph& graph_;
  const SlateGroup& group_;
  std::span<const RefinedSlate> slates_;
  int hash_bits_;
  LanePartitions partitions_;
  int layer_ = 0;
  std::vector<NodeColours> of_node_;   // [n], of reached nodes
  std::vector<std::int32_t> colours_;  // of all reached nodes' classes: rows of the current layer
  std::int64_t reached_rows_ = 0;      // the static ones follow

  // Of the step under way.
  std::vector<std::int64_t> first_group_;          // [edge sets] this group's first one
  std::vector<std::vector<std::int32_t>> single_;  // [edge sets][rows before] group of one row
  std::vector<ColourTable> several_;               // [edge sets] groups of several rows
  std::vector<std::vector<std::int32_t>> group_of_colour_;  // [edge sets][colours of several_]
  std::vector<std::uint32_t> key_;
};

}  // namespace tpudist
