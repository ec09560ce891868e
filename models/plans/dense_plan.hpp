#pragma once

#include <cstdint>
#include <span>

#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// One slate as the dense builder sees it. Spans are borrowed for the call.
struct PlanSlate {
  std::int64_t nodes = 0;
  std::span<const std::int32_t> edges;  // [m, 2] (consumer, producer)
  // [nc] nodes that a configuration gives a state; empty (tile): all nodes of a configuration have
  // the same state.
  std::span<const std::int32_t> config_nodes;
  std::int64_t configs = 0;              // K
  std::span<const std::int32_t> states;  // [K, nc], or [K] for tile: rows of the state table
  std::int64_t state_rows = 0;           // of this slate's state table
  // [nodes] the row of the graph's inputs that each node takes: nodes of equal features and opcode
  // can share one. Empty: each node has its own.
  std::span<const std::int32_t> input_row = {};
  std::int64_t input_rows = 0;
  // Where the graph's input rows begin among those of the unit; -1: behind the slate before.
  std::int64_t input_begin = -1;
};

// Builds the reference plan: one row for each (node, configuration) in every layer, with K replicas
// of each matrix. Where slates differ in K the matrices are written out for each row (replicas =
// 1). The order of the rows is the same in all layers: nodes that are needed in more layers first
// (needed_levels), then by slate, node and configuration. A node that no configuration reaches has
// K equal rows; the readout takes the first of them as common to the slate. Throws Error for a
// slate whose arrays do not fit together. Pure, thread-safe.
Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape);

}  // namespace tpudist
