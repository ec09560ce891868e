#pragma once

#include <memory>

#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// Returns what of a plan the differences between the scores of a slate depend on, as a plan of its own:
// the rows and neighbourhoods that NeededCounts counts, in the same order, and a readout without its
// common rows, which says how many nodes these stand for (Readout::left_out). What a network computes
// on it equals what it computes on the whole plan, but for a constant in the scores of each slate; the
// readout has to be a sum or a mean for that, and what follows it affine. So losses that ignore such a
// shift have the same gradient on it.
//
// A layer that groups rows (all nodes of a configuration, or all configurations of a node) takes whole
// groups: where fewer rows behind it are needed, as before a late join, all rows up to there are kept.
// `shape` is what the plan was built for. Null where the part is the whole plan, or where at some depth
// no row is needed.
std::shared_ptr<const Plan> needed_part(const Plan& plan, const PlanShape& shape);

// Returns which share of the rows before, between and behind the layers the part has; 0 .. 1.
double needed_share(const Plan& plan, const PlanShape& shape);

}  // namespace tpudist
