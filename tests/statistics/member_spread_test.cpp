#include "statistics/ranking/member_spread.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace tpudist {
namespace {

using Members = std::vector<std::vector<double>>;

TEST(MemberSpread, MembersThatDifferByScaleAndShiftAloneAgree) {
  const auto spreads = member_spreads(Members{{3, 1, 2}, {130, 110, 120}});
  ASSERT_EQ(spreads.size(), 3u);
  const std::int64_t ranks[] = {3, 1, 2};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(spreads[k].deviation, 0, 1e-12);
    EXPECT_EQ(spreads[k].best_rank, ranks[k]);
    EXPECT_EQ(spreads[k].worst_rank, ranks[k]);
  }
}

TEST(MemberSpread, IsTheSampleDeviationOfZScoresAndTheRangeOfRanks) {
  // z-scores of (0, 2): -1 and 1; of (2, 0): 1 and -1; of (0, 6): -1 and 1.
  const auto spreads = member_spreads(Members{{0, 2}, {2, 0}, {0, 6}});
  EXPECT_NEAR(spreads[0].deviation, std::sqrt(4.0 / 3), 1e-12);  // of -1, 1, -1
  EXPECT_NEAR(spreads[1].deviation, std::sqrt(4.0 / 3), 1e-12);
  EXPECT_EQ(spreads[0].best_rank, 1);
  EXPECT_EQ(spreads[0].worst_rank, 2);
}

TEST(MemberSpread, EqualScoresShareTheLowestRank) {
  const auto spreads = member_spreads(Members{{5, 1, 1, 7}, {0, 0, 0, 0}});
  EXPECT_EQ(spreads[0].best_rank, 1);
  EXPECT_EQ(spreads[0].worst_rank, 3);
  EXPECT_EQ(spreads[1].worst_rank, 1);
  EXPECT_EQ(spreads[2].worst_rank, 1);
  EXPECT_EQ(spreads[3].worst_rank, 4);
}

TEST(MemberSpread, OfOneMemberIsUndefined) {
  EXPECT_TRUE(std::isnan(member_spreads(Members{{1, 2}})[0].deviation));
}

TEST(MemberSpread, RefusesWhatCannotBeCompared) {
  EXPECT_THROW(member_spreads(Members{}), Error);
  EXPECT_THROW(member_spreads(Members{{1, 2}, {1}}), Error);
  EXPECT_THROW(member_spreads(Members{{1, std::numeric_limits<double>::infinity()}}), DataError);
}

}  // namespace
}  // namespace tpudist
