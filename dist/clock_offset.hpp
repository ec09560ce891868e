#pragma once

#include <cstdint>
#include <functional>

#include "dist/communicator.hpp"

namespace tpudist {

// The offset of this rank's clock from that of rank 0.
struct ClockOffset {
  std::int64_t offset = 0;  // ns to subtract from this rank's times; 0 on rank 0
  std::int64_t error = 0;   // ns; the true offset is at most this far away
};

// Bounds of an offset.
struct OffsetBounds {
  std::int64_t lower = 0, upper = 0;  // ns
};

// 0 if the bounds allow it, since ranks of one node share a clock; otherwise their middle.
ClockOffset offset_within(const OffsetBounds& bounds);

// Compares the clocks of all ranks in a few dozen small exchanges. Nobody leaves an all_gather
// before every rank has entered it. With b the time before and a the time after it, each round
// gives b[r] - a[0] <= offset of r <= a[r] - b[0]; the narrowest bounds are used. `now`: this
// rank's clock in ns. Collective. Host memory.
ClockOffset measure_clock_offset(Communicator& world, const std::function<std::int64_t()>& now);

}  // namespace tpudist
