#pragma once

#include "models/plans/plan.hpp"

namespace tpudist {

// Throws Error with the name of what is wrong when a plan breaks an invariant: sizes, ranges,
// sorted and merged sources, exact transposes, and needed rows that take needed rows alone. It
// shares no code with the plan builders. For tests and debug runs.
void check_plan(const Plan& plan);

}  // namespace tpudist
