#pragma once

#include <cstdint>
#include <exception>

#include "dist/communicator.hpp"

namespace tpudist {

// What a rank wants between two steps. The largest value wins.
enum class StepDecision : std::int64_t { go_on, out_of_time, stop };

// The decision of all ranks, by one small exchange. Throws on every rank when any has an error (not
// null), so that no rank waits in the step for one that does not come.
StepDecision agree(Communicator& world, StepDecision wanted, const std::exception_ptr& error);

}  // namespace tpudist
