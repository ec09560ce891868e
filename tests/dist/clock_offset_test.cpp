#include "dist/health/job_trace.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/trace.hpp"
#include "dist/collectives/mpi_session.hpp"

namespace tpudist {
namespace {

TEST(ClockOffset, IsTheMiddleOfItsBoundsUnlessTheClocksMayBeOne) {
  const ClockOffset away = offset_within(100, 140);
  EXPECT_EQ(away.offset, 120);
  EXPECT_EQ(away.error, 20);
  const ClockOffset one = offset_within(-10, 30);
  EXPECT_EQ(one.offset, 0);
  EXPECT_EQ(one.error, 30);
}

// The clock of each rank is made to be an hour ahead of the one before.
TEST(ClockOffset, IsFoundToWithinTheErrorItStates) {
  const MpiSession session(nullptr, nullptr);
  const auto world = session.world();
  constexpr std::int64_t kHour = 3'600'000'000'000;
  const std::int64_t ahead = kHour * world->rank();
  const ClockOffset found = measure_clock_offset(*world, [&] { return Trace::now() + ahead; });
  EXPECT_LE(std::abs(found.offset - ahead), found.error);
  EXPECT_LT(found.error, kHour / 60);
  if (world->rank() == 0) EXPECT_EQ(found.error, 0);
}

TEST(ClockOffset, IsNoneOnOneNode) {
  const MpiSession session(nullptr, nullptr);
  const auto world = session.world();
  EXPECT_EQ(measure_clock_offset(*world, Trace::now).offset, 0);
}

}  // namespace
}  // namespace tpudist
