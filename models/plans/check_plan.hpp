#pragma once

#include "models/plans/plan.hpp"

namespace tpudist {

// Throws Error, which names the fault, when a plan violates an invariant: sizes, ranges, sorted and
// merged sources, exact transposes, and needed rows that depend only on needed rows. It shares no
// code with the plan builders. For tests and debug runs.
void check_plan(const Plan& plan);

}  // namespace tpudist
