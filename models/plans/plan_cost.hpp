#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

// The arithmetic of one plan layer and of what follows it up to the next, in floating-point
// operations (two for a multiply-add) of the forward pass.
struct LayerWork {
  double before = 0;         // for each row before the plan layer
  double neighbourhood = 0;  // for each neighbourhood of each edge set
  double behind = 0;         // for each row behind it
  std::int64_t floats = 0;   // numbers that a row behind it keeps
  int edge_sets = 0;
};

// The arithmetic of a network's products with its weights, which is nearly all of it.
struct NetworkWork {
  double input_row = 0, state = 0;  // for each input row and each state
  // At each depth: the first is that of the rows before the first plan layer, which only has
  // `behind` and `floats`.
  std::vector<LayerWork> steps{1};
  // Whether the backward pass of a translation-invariant loss leaves out what is not needed.
  bool skips_unneeded = true;
};

// What one member's passes over a plan cost, in floating-point operations.
struct PlanCost {
  double forward = 0;
  double backward = 0;         // the backward pass over all rows
  double needed_backward = 0;  // that over the needed rows, for a translation-invariant loss
  double states = 0;  // how many floats the states before, between and behind the layers are
  // A training step with a translation-invariant loss.
  double step() const { return forward + needed_backward; }
};

// Returns the cost of a plan that was built. `network` must have the layers of the plan.
PlanCost plan_cost(const Plan& plan, const NetworkWork& network);

// Returns what a dense plan would cost, without building it: one with `rows` rows (nodes x
// configurations) before and behind each layer, `input_rows` distinct nodes and `states` states.
// `needed_rows` [layers] says how many of the rows behind each layer are needed.
PlanCost dense_plan_cost(std::int64_t rows, std::span<const std::int64_t> needed_rows,
                         std::int64_t input_rows, std::int64_t states, const NetworkWork& network);

}  // namespace tpudist
