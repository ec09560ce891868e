#pragma once

#include <cstddef>
#include <span>

#include "models/plans/dense_rows.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// The readout of a dense plan of `depth` layers: one cell for each configuration, with its needed
// rows. For a node that is not needed, the first configuration's row is common to the slate.
// `mean`: rows have the weight 1 / nodes instead of 1. Pure, thread-safe.
Readout make_dense_readout(std::span<const PlanSlate> slates, bool mean, const DenseRows& rows,
                           std::size_t depth);

}  // namespace tpudist
