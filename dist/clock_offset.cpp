#include "dist/clock_offset.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace tpudist {
namespace {

constexpr int kRounds = 32;

}  // namespace

ClockOffset offset_within(const OffsetBounds& bounds) {
  const std::int64_t middle = bounds.lower + (bounds.upper - bounds.lower) / 2;
  const std::int64_t offset = bounds.lower <= 0 && bounds.upper >= 0 ? 0 : middle;
  return {offset, std::max(offset - bounds.lower, bounds.upper - offset)};
}

ClockOffset measure_clock_offset(Communicator& world, const std::function<std::int64_t()>& now) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const auto own = static_cast<std::size_t>(world.rank());
  if (ranks == 1) return {};
  const std::vector<std::int64_t> ones(ranks, 1);
  std::vector<std::int64_t> before(ranks);
  std::vector<std::int64_t> lower(ranks, std::numeric_limits<std::int64_t>::min());
  std::int64_t upper = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t begin = now();
    world.all_gather(std::span(&begin, 1), std::span(before), std::span<const std::int64_t>(ones));
    const std::int64_t end = now();
    upper = std::min(upper, end - before[0]);
    // Only the times of rank 0 give bounds; it sends them to the others.
    for (std::size_t r = 0; r < ranks; ++r) lower[r] = std::max(lower[r], before[r] - end);
  }
  world.broadcast(std::span(lower), 0);
  return own == 0 ? ClockOffset{} : offset_within({lower[own], upper});
}

}  // namespace tpudist
