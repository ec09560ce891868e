#include "statistics/ranking/rejection.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/means.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(RejectedMembers, KeepsALossThatRoseByLessThanItsNoise) {
  std::vector<MemberRecord> members(3, healthy({0.7}));
  for (MemberRecord& member : members) member.last_loss = 3.2;
  members[1].loss_margin = 0.3;
  members[2].loss_margin = 0.1;
  const auto rejected = rejected_members(members);
  ASSERT_EQ(rejected.size(), 2u);
  EXPECT_EQ(rejected[0].member, 0);  // nothing says what is noise
  EXPECT_EQ(rejected[1].member, 2);
  EXPECT_THAT(rejected[1].reason, HasSubstr("3.2 at the end; a rise below 0.1 would be noise"));
}

TEST(RejectedMembers, LeavesOutAMemberFarBelowItsPeers) {
  const std::vector<MemberRecord> members{healthy({0.70, 0.80}), healthy({0.72, 0.80}),
                                          healthy({0.40, 0.60}), healthy({0.71, 0.79})};
  const auto rejected = rejected_members(members);
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0].member, 2);
  EXPECT_THAT(rejected[0].reason, HasSubstr("0.5000"));
  EXPECT_THAT(rejected[0].reason, HasSubstr("0.2533 below 0.7533, that of the 3 other members"));
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

// Around the mean of the others 0.7 their deviation is 0.02, with 3 degrees of freedom. 0.01 / 5 of
// Student's t lie below -8.053, and the mean of four varies, too: sqrt(5 / 4).
TEST(RejectedMembers, AllowsMoreWhereFewMembersTellTheDeviation) {
  const double root = 0.02 * std::sqrt(3.0) / 2;  // four scores of deviation 0.02
  const auto with = [&](double below) {
    return std::vector{healthy({0.7 - root}), healthy({0.7 - root}), healthy({0.7 + root}),
                       healthy({0.7 + root}), healthy({0.7 - below})};
  };
  const double allowed = 8.0526 * std::sqrt(5.0 / 4) * 0.02;
  EXPECT_THAT(rejected_members(with(allowed - 1e-4)), IsEmpty());
  const auto rejected = rejected_members(with(allowed + 1e-4));
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_THAT(rejected[0].reason, HasSubstr("standard deviation 0.0200"));
}

// With many members it is four deviations.
TEST(RejectedMembers, AllowsFourDeviations) {
  std::vector<MemberRecord> members;
  for (int m = 0; m < 100; ++m)
    members.push_back(healthy({0.7 + (m % 2 == 0 ? 0.05 : -0.05) * std::sqrt(0.99)}));
  members.push_back(healthy({0.7 - 0.2 + 1e-4}));
  EXPECT_THAT(rejected_members(members), IsEmpty());
  members.back() = healthy({0.7 - 0.2 - 1e-4});
  ASSERT_EQ(rejected_members(members).size(), 1u);
}

TEST(RejectedMembers, FindsSeveralThatFailed) {
  std::vector<MemberRecord> members;
  for (const double score : {0.70, 0.71, 0.72, 0.40, 0.69, 0.70, 0.38, 0.71, 0.70})
    members.push_back(healthy({score}));
  ASSERT_EQ(rejected_members(members).size(), 2u);
}

TEST(RejectedMembers, TakesEqualScoresAsTheyAre) {
  EXPECT_THAT(rejected_members(std::vector(4, healthy({0.7}))), IsEmpty());
  std::vector<MemberRecord> members(4, healthy({0.7}));
  members[1] = healthy({0.5});
  EXPECT_EQ(rejected_members(members).size(), 1u);
}

// Ensembles of `folds` x `seeds` healthy members, of which one failed where `failed`: how many of
// 1,000 lost one, or its failed one.
int rejecting(int folds, int seeds, double deviation, bool failed) {
  int count = 0;
  for (std::uint64_t ensemble = 0; ensemble < 1000; ++ensemble) {
    CounterRng rng(mix_key({7, ensemble}));
    std::vector<MemberRecord> members;
    for (int m = 0; m < folds * seeds; ++m) {
      std::vector<double> scores(static_cast<std::size_t>(folds), kNone);
      const int fold = m % folds;
      scores[static_cast<std::size_t>(fold)] = 0.5 + 0.1 * fold + deviation * rng.normal();
      if (failed && m == 0) scores[0] -= 0.3;
      members.push_back(healthy(std::move(scores)));
    }
    const auto rejected = rejected_members(members);
    count += std::ranges::any_of(rejected,
                                 [&](const Rejection& one) { return !failed || one.member == 0; });
  }
  return count;
}

TEST(RejectedMembers, HardlyEverRejectsAHealthyMember) {
  for (const auto& [folds, seeds] :
       {std::pair(5, 3), std::pair(5, 5), std::pair(1, 5), std::pair(1, 10)}) {
    // Where members differ by more than 0.03, the margin of 0.10 no longer protects them.
    for (const double deviation : {0.03, 0.08, 0.5})
      EXPECT_LE(rejecting(folds, seeds, deviation, false), 20) << folds << seeds << deviation;
    EXPECT_GE(rejecting(folds, seeds, 0.011, true), 995) << folds << seeds;
    EXPECT_GE(rejecting(folds, seeds, 0.02, true), 940) << folds << seeds;
  }
}

}  // namespace
}  // namespace tpudist
