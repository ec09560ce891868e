#include "statistics/rejection.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "core/random.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

MemberRecord healthy(std::vector<double> scores) {
  return {true, 3.0, 1.0, std::move(scores)};
}

TEST(RejectedMembers, LeavesOutWhatIsNotFiniteAndWhatDidNotLearn) {
  std::vector<MemberRecord> members(3, healthy({0.7}));
  members[1].finite = false;
  members[2].last_loss = 3.0;
  const auto rejected = rejected_members(members);
  ASSERT_EQ(rejected.size(), 2u);
  EXPECT_EQ(rejected[0].member, 1);
  EXPECT_THAT(rejected[0].reason, HasSubstr("not finite"));
  EXPECT_EQ(rejected[1].member, 2);
  EXPECT_THAT(rejected[1].reason, HasSubstr("3 at the start, 3 at the end"));
}

TEST(RejectedMembers, LeavesOutAMemberFarBelowItsPeers) {
  const std::vector<MemberRecord> members{healthy({0.70, 0.80}), healthy({0.72, 0.80}),
                                          healthy({0.40, 0.60}), healthy({0.71, 0.79})};
  const auto rejected = rejected_members(members);
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0].member, 2);
  EXPECT_THAT(rejected[0].reason, HasSubstr("0.5000"));
  EXPECT_THAT(rejected[0].reason, HasSubstr("0.7500, the median of the 4 members"));
}

TEST(RejectedMembers, KeepsAMemberWithinTheMargin) {
  EXPECT_THAT(rejected_members(std::vector{healthy({0.75}), healthy({0.75}), healthy({0.66})}),
              IsEmpty());
}

// A hard fold is no failure: its members are low on graphs that the others never scored.
TEST(RejectedMembers, NeverComparesFolds) {
  const std::vector<MemberRecord> members{healthy({0.8, kNone}), healthy({0.8, kNone}),
                                          healthy({0.8, kNone}), healthy({kNone, 0.2}),
                                          healthy({kNone, 0.2}), healthy({kNone, 0.2})};
  EXPECT_THAT(rejected_members(members), IsEmpty());
}

TEST(RejectedMembers, NeedsPeersToCompareWith) {
  EXPECT_THAT(rejected_members(std::vector{healthy({0.8}), healthy({0.1})}), IsEmpty());
}

// Where runs scatter widely the allowance widens with them.
TEST(RejectedMembers, AllowsFourPooledDeviations) {
  const std::vector<MemberRecord> members{healthy({0.50}), healthy({0.60}), healthy({0.70}),
                                          healthy({0.80}), healthy({0.90})};
  EXPECT_NEAR(pooled_deviation(members), 0.14826, 1e-12);
  EXPECT_THAT(rejected_members(members), IsEmpty());
}

// Members whose scores differ by chance alone, standard deviation 0.03, in ensembles of 15.
TEST(RejectedMembers, HardlyEverRejectsAHealthyMember) {
  CounterRng rng(7);
  int rejected = 0;
  for (int ensemble = 0; ensemble < 200; ++ensemble) {
    std::vector<MemberRecord> members;
    for (int m = 0; m < 15; ++m) {
      std::vector<double> scores(5, kNone);
      scores[static_cast<std::size_t>(m) % 5] = 0.5 + 0.1 * (m % 5) + 0.03 * rng.normal();
      members.push_back(healthy(std::move(scores)));
    }
    rejected += rejected_members(members).empty() ? 0 : 1;
  }
  EXPECT_LE(rejected, 4);
}

}  // namespace
}  // namespace tpudist
