#pragma once

#include <cstdint>
#include <exception>

#include "dist/communicator.hpp"

namespace tpudist {

// What a rank wants at a step boundary. The largest value wins.
enum class StepDecision : std::int64_t { go_on, out_of_time, stop };

// What all ranks do, by one small exchange. Throws on every rank when any has an error (not null), so
// that no rank waits in the step for one that never comes.
StepDecision agree(Communicator& world, StepDecision wanted, const std::exception_ptr& error);

}  // namespace tpudist
