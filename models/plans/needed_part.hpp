#pragma once

#include <memory>

#include "models/plans/plan.hpp"

namespace tpudist {

// Returns what of a plan the differences between the scores of a slate depend on, as a plan of its own:
// the rows and neighbourhoods that NeededCounts counts, in the same order, and a readout without its
// common rows, which says how many nodes these stand for (Readout::left_out). What a network computes
// on it equals what it computes on the whole plan, but for a constant in the scores of each slate; the
// readout has to be a sum or a mean for that, and what follows it affine. So losses that ignore such a
// shift have the same gradient on it.
//
// Null where that is the whole plan, or where at some depth no row is needed.
std::shared_ptr<const Plan> needed_part(const Plan& plan);

// Returns which share of the rows before, between and behind the layers is needed; 0 .. 1.
double needed_share(const Plan& plan);

}  // namespace tpudist
