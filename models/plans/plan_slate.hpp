#pragma once

#include <cstdint>
#include <span>

namespace tpudist {

// How a node enters the readout: its rows are summed and get a gradient, are summed as constants, or
// are left out.
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
  // [nodes] the row of the graph's inputs for each node: nodes of equal features and opcode can
  // share one. Empty: each node has its own.
  std::span<const std::int32_t> input_row = {};
  std::int64_t input_rows = 0;
  // Index of the graph's first input row in the unit; -1: after those of the previous slate.
  std::int64_t input_begin = -1;
  std::span<const std::int32_t> config_edges = {};  // [p, 2], for layers that take them
  // [nodes]; empty: all are trained. Only for dense plans.
  std::span<const NodeUse> use = {};
};

}  // namespace tpudist
