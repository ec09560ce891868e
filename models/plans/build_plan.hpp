#pragma once

#include <cstdint>
#include <span>

#include "models/plans/kept_rows.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/refined_graph.hpp"

namespace tpudist {

// The role of a node in the readout: its rows are summed and get a gradient, are summed as
// constants, or are left out.
enum class NodeUse : char { trained, constant, left_out };

// One slate as input of the plan builders. Spans are borrowed for the call.
struct PlanSlate {
  std::int64_t nodes = 0;
  std::span<const std::int32_t> edges;  // [m, 2] (consumer, producer)
  // [nc] nodes to which a configuration gives a state; empty (tile): all nodes of a configuration
  // have the same state.
  std::span<const std::int32_t> config_nodes;
  std::int64_t configs = 0;              // K
  std::span<const std::int32_t> states;  // [K, nc], or [K] for tile: rows of the state table
  std::int64_t state_rows = 0;           // of this slate's state table
  // [nodes] the row of the graph's inputs for each node; nodes of equal features and opcode can
  // share a row. Empty: each node has its own.
  std::span<const std::int32_t> input_row = {};
  std::int64_t input_rows = 0;
  // Index of the graph's first input row in the unit; -1: after those of the previous slate.
  std::int64_t input_begin = -1;
  std::span<const std::int32_t> config_edges = {};  // [p, 2], for layers that take them
  // [nodes]; empty: all are trained. Only for dense plans.
  std::span<const NodeUse> use = {};
};

// Builds the reference plan: one row for each (node, configuration) in every layer, with K replicas
// of each matrix. If slates differ in K, replicas is 1: each row of the plan has its own matrix
// row. All layers have the same order of rows: first nodes that are needed in more layers
// (needed_levels), then by slate, node and configuration. A node that no configuration reaches has
// K equal rows; the readout takes the first as common to the slate, unless PlanShape::per_element
// makes all rows needed. Throws Error for a slate with inconsistent arrays. Pure, thread-safe.
Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape);

// One slate for the refined builder. Spans and graph are borrowed for the call.
struct RefinedSlate {
  const RefinedGraph* graph = nullptr;
  std::int64_t configs = 0;              // K
  std::span<const std::int32_t> states;  // as in PlanSlate
  // [state_rows] equal numbers for states of equal content, in all slates of one graph.
  std::span<const std::int32_t> state_class;
  std::int64_t state_rows = 0;
  std::int64_t input_begin = -1;  // as in PlanSlate; input rows are the graph's node classes
  // As in PlanSlate; 0: the classes of the graph's nodes. A part of a graph may lack some.
  std::int64_t input_rows = 0;
};

// Builds a plan with one row for each distinct state, by colour refinement over (node,
// configuration). A node's state after a layer depends only on its own state and its neighbours'
// states before the layer. So pairs with equal inputs get one colour and one row, and the scores
// are exactly those of the dense plan (theory: Bollen et al., "Learning graph neural networks using
// exact compression", arXiv 2304.14793; Sourek et al., "Lossless compression of structured
// convolutional models via lifting", arXiv 2007.06567). Slates of the same graph are refined
// together.
//
// Order of the rows before or after a layer: self rows of needed rows (own-state rows of needed
// rows of the next layer), other needed rows, the rest. Each part is sorted by graph; in a graph
// the rows that configurations reach come first, by first occurrence over (node, configuration).
// Rows that all configurations of a graph share at the readout are kept separately as `common`.
// Throws Error for states or classes of the wrong length. Pure, thread-safe. `hash_bits` < 64
// weakens the hash, to test the full comparison.
Plan build_refined_plan(std::span<const RefinedSlate> slates, int hash_bits = 64);

// Builds a refined plan of one slate for scoring, with the same sums in an order that the slate does
// not decide: neighbours are sorted by their content, and the readout adds up nodes in the order of
// the graph, in cells of the same nodes in every slate. So a configuration's score has the same bits
// in any slate. `state_hash` [state_rows]: of the content of states. For layers along edges alone;
// without the transposes that a backward pass needs, and all rows count as not needed. Pure,
// thread-safe.
Plan build_fixed_plan(const RefinedSlate& slate, std::span<const ContentHash> state_hash);

// The same, with the rows alone that use.rows lacks: the rows that layer i computes are then not
// those before layer i + 1, and use.levels says how to exchange them. If cells are kept, the
// readout's cells are the computed ones, its scores add up those in use.levels.back().taken, whose
// last is the common one, and `left_out` is the number of nodes. Needs no slate.state_class. Changes
// use.rows, so not thread-safe for the same one.
Plan build_kept_plan(const RefinedSlate& slate, std::span<const ContentHash> state_hash,
                     KeptUse& use);

}  // namespace tpudist
