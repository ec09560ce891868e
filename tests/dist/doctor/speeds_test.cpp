#include "dist/doctor/doctor.hpp"

#include <gtest/gtest.h>

#include "dist/collectives/mpi_session.hpp"

namespace tpudist {
namespace {

TEST(UpperMedian, IsAValueOfTheList) {
  EXPECT_EQ(upper_median({3, 1, 2}), 2);
  EXPECT_EQ(upper_median({4, 1, 2, 3}), 3);
}

TEST(TimeAllReduce, TimesEverySizeWhereThereAreRanks) {
  const MpiSession session(nullptr, nullptr);
  const auto world = session.world();
  const std::vector<JobFacts::AllReduceSpeed> speeds = time_all_reduce(*world);
  if (world->size() == 1) {
    EXPECT_TRUE(speeds.empty());
    return;
  }
  ASSERT_EQ(speeds.size(), 9u);
  EXPECT_EQ(speeds.front().bytes, 8);
  EXPECT_EQ(speeds.back().bytes, std::int64_t{64} << 20);
  for (const JobFacts::AllReduceSpeed& speed : speeds) {
    EXPECT_EQ(speed.memory, "host");
    EXPECT_GT(speed.seconds, 0);
  }
}

TEST(TimeMemory, CountsTheRanksOfANode) {
  const MpiSession session(nullptr, nullptr);
  const auto world = session.world();
  const auto node = world->split(0);
  const std::vector<JobFacts::MemorySpeed> speeds = time_memory(*world, *node, 5);
  ASSERT_EQ(speeds.size(), 1u);
  EXPECT_EQ(speeds[0].node, 5);
  EXPECT_EQ(speeds[0].ranks, world->size());
  EXPECT_GT(speeds[0].alone, 0);
  EXPECT_GT(speeds[0].together, 0);
}

}  // namespace
}  // namespace tpudist
