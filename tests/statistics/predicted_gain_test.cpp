#include "statistics/ranking/predicted_gain.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

// Configurations by the z-scores of their members.
std::vector<MemberSpread> list(const std::vector<Values>& z_scores) {
  std::vector<MemberSpread> all;
  for (const Values& own : z_scores) all.emplace_back().z_scores = own;
  return all;
}

TEST(PredictedGain, IsTheMeanOverMembersWithTheirDeviation) {
  const PredictedGain gain = predicted_gain(Values{1, 2, 3}, Values{0, 2.5, 1});
  EXPECT_NEAR(gain.mean, 2.5 / 3, 1e-12);  // of 1, -0.5 and 2
  EXPECT_NEAR(gain.deviation, std::sqrt(4.75 / 3), 1e-12);
  EXPECT_EQ(gain.faster, 2);
  const PredictedGain itself = predicted_gain(Values{1, 2}, Values{1, 2});
  EXPECT_EQ(itself.mean, 0);
  EXPECT_EQ(itself.faster, 0);
  const PredictedGain alone = predicted_gain(Values{1}, Values{0});
  EXPECT_EQ(alone.mean, 1);
  EXPECT_TRUE(std::isnan(alone.deviation));
}

TEST(KnownGain, IsKnownWhereMembersAgree) {
  const KnownGain known = known_gain(list({{-2, -2.1, -1.9}, {1, 1, 1}, {0, 0, 0}}), 1);
  EXPECT_NEAR(known.interval.value, 3, 1e-12);
  EXPECT_NEAR(known.deviation, 0.1, 1e-12);
  EXPECT_TRUE(known.is_better());
  // Against the best there is no gain.
  EXPECT_FALSE(known_gain(list({{-2, -2.1, -1.9}, {1, 1, 1}}), 0).is_better());
}

// The default's mean of 0 is worse than -0.5 of both others, which one member alone prefers.
TEST(KnownGain, JudgesByMembersThatDidNotChoose) {
  const KnownGain known = known_gain(list({{0, 0}, {-2, 1}, {1, -2}}), 0);
  EXPECT_DOUBLE_EQ(known.interval.value, -1);
  EXPECT_FALSE(known.is_better());
}

// Twenty members know the mean gain of 0.6 well, and disagree by more about a single program.
TEST(KnownGain, HasToExceedTheDeviationOfMembers) {
  Values z;
  for (int m = 0; m < 20; ++m) z.push_back(m % 2 == 0 ? -1.6 : 0.4);
  const KnownGain known = known_gain(list({Values(20, 0), z}), 0);
  EXPECT_GT(known.interval.low, 0);
  EXPECT_GT(known.deviation, known.interval.value);
  EXPECT_FALSE(known.is_better());
}

TEST(KnownGain, IsUnknownToASingleMember) {
  const KnownGain known = known_gain(list({{1}, {-1}}), 0);
  EXPECT_TRUE(std::isnan(known.interval.value));
  EXPECT_FALSE(known.is_better());
}

TEST(KnownGain, IsSeldomKnownToNoise) {
  int known = 0;
  constexpr int kLists = 500;
  CounterRng random(5);
  for (int i = 0; i < kLists; ++i) {
    std::vector<Values> z(50, Values(5));
    for (Values& config : z) {
      for (double& score : config) score = random.normal();
    }
    known += known_gain(list(z), 0).is_better();
  }
  EXPECT_LE(known, 0.06 * kLists);
}

}  // namespace
}  // namespace tpudist
