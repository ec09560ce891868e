#pragma once

#include <span>

#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"
#include "models/plans/plan_slate.hpp"

namespace tpudist {

// Builds the reference plan: one row for each (node, configuration) in every layer, with K replicas
// of each matrix. If slates differ in K, matrices have an own row for each row of the plan
// (replicas = 1). The order of the rows is the same in all layers: nodes that are needed in more
// layers first (needed_levels), then by slate, node and configuration. A node that no configuration
// reaches has K equal rows; the readout uses the first of them as common to the slate, unless
// PlanShape::per_element makes all rows needed. Throws Error for a slate with inconsistent arrays.
// Pure, thread-safe.
Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape);

}  // namespace tpudist
