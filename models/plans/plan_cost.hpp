#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

// The arithmetic of one plan layer and of everything up to the next one, in floating-point
// operations of the forward pass (two per multiply-add).
struct LayerWork {
  double before = 0;         // per row before the plan layer
  double neighbourhood = 0;  // per neighbourhood of each edge set
  double behind = 0;         // per row after it
  std::int64_t floats = 0;   // numbers kept per row after it
  int edge_sets = 0;
  std::int64_t entry = 0;  // numbers read for each entry of the edge sets
};

// A network's arithmetic in products with its weights: nearly all of its arithmetic.
struct NetworkWork {
  double input_row = 0, state = 0;  // per input row, and per state
  // One entry per depth. The first is for the rows before the first plan layer; it has only
  // `behind` and `floats`.
  std::vector<LayerWork> steps{1};
  // Whether the backward pass of a translation-invariant loss skips rows that are not needed.
  bool skips_unneeded = true;
};

// The cost of one member's passes over a plan, in floating-point operations.
struct PlanCost {
  double forward = 0;
  double backward = 0;         // the backward pass over all rows
  double needed_backward = 0;  // over the needed rows only, for a translation-invariant loss
  double states = 0;   // number of floats of the states before, between and after the layers
  double entries = 0;  // number of floats that aggregating over neighbours reads
  // A training step with a translation-invariant loss.
  double step() const { return forward + needed_backward; }
};

// Returns the cost of an existing plan. `network` must have the layers of the plan.
PlanCost plan_cost(const Plan& plan, const NetworkWork& network);

// Returns the cost of a dense plan without building it. `rows`: nodes x configurations, before and
// after each layer. `input_rows` and `states`: distinct ones. `needed_rows`, `entries` [layers]:
// needed rows after each layer, entries of its edge sets.
PlanCost dense_plan_cost(std::int64_t rows, std::span<const std::int64_t> needed_rows,
                         std::span<const std::int64_t> entries, std::int64_t input_rows,
                         std::int64_t states, const NetworkWork& network);

}  // namespace tpudist
