#pragma once

#include <cstdint>
#include <functional>

#include "dist/communicator.hpp"

namespace tpudist {

// How this rank's clock stands to that of rank 0.
struct ClockOffset {
  std::int64_t offset = 0;  // ns to be taken from this rank's times; 0 on rank 0
  std::int64_t error = 0;   // ns; the true offset is not further away than that
};

// What is known of an offset: it lies between the two.
struct OffsetBounds {
  std::int64_t lower = 0, upper = 0;  // ns
};

// 0 where that is possible, since ranks of one node share a clock, else the middle.
ClockOffset offset_within(const OffsetBounds& bounds);

// Compares the clocks of all ranks, a few dozen small exchanges. Nobody leaves an all_gather before
// every rank has come to it: with b and a for before and behind, b[r] - a[0] <= offset of r <= a[r] -
// b[0] in each round, and the narrowest of these bounds count. `now`: this rank's clock in ns.
// Collective. Host memory.
ClockOffset measure_clock_offset(Communicator& world, const std::function<std::int64_t()>& now);

}  // namespace tpudist
