#pragma once

#include <memory>

#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// Returns the part of a plan that influences the differences between the scores of a slate, as a
// plan of its own. It has the rows and neighbourhoods counted by NeededCounts, in the same order,
// and a readout without common rows, which records how many nodes these represent
// (Readout::left_out). On it a network computes the same values as on the whole plan, except for a
// constant in the scores of each slate. For that the readout must be a sum or a mean, and
// everything after it affine. So losses that ignore such a shift have the same gradient on it.
//
// A layer that groups rows (all nodes of a configuration, or all configurations of a node) needs
// whole groups: if fewer rows after it are needed, as before a late join, all rows up to there are
// kept. `shape`: that of the plan. Null if the part is the whole plan, or if at some depth no row
// is needed.
std::shared_ptr<const Plan> needed_part(const Plan& plan, const PlanShape& shape);

// Returns the part's share, 0 .. 1, of the rows before, between and after the layers.
double needed_share(const Plan& plan, const PlanShape& shape);

}  // namespace tpudist
