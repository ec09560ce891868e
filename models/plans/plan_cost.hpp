#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

// The columns of a network's weight matrices. Nothing else of a network enters its cost.
struct NetworkWidths {
  std::int64_t node_features = 0, node_width = 0;  // input and output of the Linear over a node
  std::int64_t opcode_width = 0;                   // columns of the opcode embedding
  std::int64_t config_features = 0;                // kLayoutConfigFeatures or kTileConfigFeatures
  std::int64_t encoder_width = 0;                  // what [opcode | node | config] is mapped to
  struct Layer {
    std::int64_t width = 0;  // output channels
    int edge_sets = 1;       // each has weights of its own, beside those for the node's own state
  };
  std::vector<Layer> layers;
};

// What one member's passes over a plan cost. Arithmetic is in floating-point operations (two for a
// multiply-add), and only that of the products with the weights, which is nearly all of it.
struct PlanCost {
  double forward = 0;
  double backward = 0;         // the backward pass over all rows
  double needed_backward = 0;  // that over the needed rows, for a translation-invariant loss
  double states = 0;  // how many floats the states before, between and behind the layers are
  // A training step with a translation-invariant loss.
  double step() const { return forward + needed_backward; }
};

// Returns the cost of a plan that was built. `network` must have the layers of the plan.
PlanCost plan_cost(const Plan& plan, const NetworkWidths& network);

// Returns what a dense plan would cost, without building it: one with `rows` rows (nodes x
// configurations) before and behind each layer, `input_rows` distinct nodes and `states` states.
// `needed_rows` [layers] says how many of the rows behind each layer are needed.
PlanCost dense_plan_cost(std::int64_t rows, std::span<const std::int64_t> needed_rows,
                         std::int64_t input_rows, std::int64_t states,
                         const NetworkWidths& network);

}  // namespace tpudist
