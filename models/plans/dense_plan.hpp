#pragma once

#include <span>

#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"
#include "models/plans/plan_slate.hpp"

namespace tpudist {

// Builds the reference plan: one row for each (node, configuration) in every layer, with K replicas
// of each matrix. Where slates differ in K the matrices are written out for each row (replicas =
// 1). The order of the rows is the same in all layers: nodes that are needed in more layers first
// (needed_levels), then by slate, node and configuration. A node that no configuration reaches has
// K equal rows; the readout takes the first of them as common to the slate. Throws Error for a
// slate whose arrays do not fit together. Pure, thread-safe.
Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape);

}  // namespace tpudist
