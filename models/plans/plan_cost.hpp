#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

// Numbers that autograd keeps for the backward pass besides LayerWork::floats, per row before the
// plan layer and after it, and per neighbourhood and entry of each edge set.
struct KeptNumbers {
  double before = 0, neighbourhood = 0, entry = 0, behind = 0;
};

// The arithmetic of one plan layer and of everything up to the next one, in floating-point
// operations of the forward pass (two per multiply-add).
struct LayerWork {
  double before = 0;         // per row before the plan layer
  double neighbourhood = 0;  // per neighbourhood of each edge set
  double behind = 0;         // per row after it
  std::int64_t floats = 0;   // numbers kept per row after it
  int edge_sets = 0;
  std::int64_t entry = 0;  // numbers read for each entry of the edge sets
  KeptNumbers kept = {};
  double widest = 0;  // numbers per row behind that the gradients of one layer take, at most

  // Adds a layer that maps each row behind by itself: `width` numbers per row, and what it keeps
  // besides.
  void add_rows(std::int64_t width, double more = 0) {
    floats += width;
    kept.behind += more;
    widest = std::max(widest, static_cast<double>(width) + more);
  }
};

// A network's arithmetic in products with its weights: nearly all of its arithmetic.
struct NetworkWork {
  double input_row = 0, state = 0;              // per input row, and per state
  double kept_of_input = 0, kept_of_state = 0;  // numbers that autograd keeps of them
  // One entry per depth. The first is for the rows before the first plan layer; it has only
  // `behind` and `floats`.
  std::vector<LayerWork> steps{1};
  // Whether the backward pass of a translation-invariant loss skips rows that are not needed.
  bool skips_unneeded = true;

  // Adds the work of a layer that uses one plan layer, and what it keeps.
  void add_step(LayerWork step, const KeptNumbers& kept = {}) {
    step.kept = kept;
    step.widest = static_cast<double>(step.floats) + kept.behind;
    steps.push_back(step);
  }
};

// The cost of one member's passes over a plan, in floating-point operations.
struct PlanCost {
  double forward = 0;
  double backward = 0;         // the backward pass over all rows
  double needed_backward = 0;  // over the needed rows only, for a translation-invariant loss
  double states = 0;   // number of floats of the states before, between and after the layers
  double entries = 0;  // number of floats that aggregating over neighbours reads
  // Floats that autograd keeps of all layers, and the most that a training holds of states, what it
  // keeps, gradients and sums at a time, as on a GPU.
  double kept = 0, most_held = 0;
  // A training step with a translation-invariant loss.
  double step() const { return forward + needed_backward; }
};

// Returns the cost of an existing plan, or of its part from depth `first` on. `network` must have
// the layers of the plan, or of that part.
PlanCost plan_cost(const Plan& plan, const NetworkWork& network, std::size_t first = 0);

// Returns the cost of a dense plan without building it. `rows`: nodes x configurations, before and
// after each layer. `input_rows` and `states`: distinct ones. `needed_rows`, `entries` [layers]:
// needed rows after each layer, entries of its edge sets.
PlanCost dense_plan_cost(std::int64_t rows, std::span<const std::int64_t> needed_rows,
                         std::span<const std::int64_t> entries, std::int64_t input_rows,
                         std::int64_t states, const NetworkWork& network);

}  // namespace tpudist
