#include "launch/sweep/sweep_job.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;

TEST(RankGroups, TheLastSizeIsRepeated) {
  EXPECT_THAT(group_of_ranks({}, 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(group_of_ranks({2}, 5), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(group_of_ranks({2, 1}, 5), ElementsAre(0, 0, 1, 2, 3));
}

TEST(RankGroups, SizesThatNoRankFillsAreRefused) {
  EXPECT_THROW(group_of_ranks({2, 2, 1}, 4), ConfigError);
  EXPECT_THROW(group_of_ranks({4}, 2), ConfigError);
  EXPECT_THROW(group_of_ranks({2, 2}, 3), ConfigError);
  EXPECT_THROW(group_of_ranks({0}, 2), ConfigError);
}

}  // namespace
}  // namespace tpudist
