#include "statistics/ranking/predicted_gain.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

// What is known of the best against configuration 0, from z-scores [c][M].
KnownGain known(const std::vector<Values>& z_scores) {
  std::vector<MemberSpread> list;
  for (const Values& own : z_scores) list.emplace_back().z_scores = own;
  return known_gain(list, 0);
}

TEST(PredictedGain, IsTheMeanOverMembersWithTheirDeviation) {
  const PredictedGain gain = predicted_gain(Values{1, 2, 3}, Values{0, 2.5, 1});
  EXPECT_NEAR(gain.mean, 2.5 / 3, 1e-12);  // of 1, -0.5 and 2
  EXPECT_NEAR(gain.deviation, std::sqrt(4.75 / 3), 1e-12);
  EXPECT_EQ(gain.faster, 2);
  EXPECT_EQ(predicted_gain(Values{1, 2}, Values{1, 2}).faster, 0);
  EXPECT_TRUE(std::isnan(predicted_gain(Values{1}, Values{0}).deviation));
}

TEST(KnownGain, IsThatOfConfigurationsWhichTheOtherMembersChoose) {
  const KnownGain agreed = known({{1, 1, 1}, {-2, -2.1, -1.9}, {0, 0, 0}});
  EXPECT_NEAR(agreed.interval.value, 3, 1e-12);
  EXPECT_NEAR(agreed.deviation, 0.1, 1e-12);
  EXPECT_TRUE(agreed.is_better());
  EXPECT_FALSE(known({{-2, -2.1, -1.9}, {1, 1, 1}}).is_better());  // the default is the best
  // Each of two members prefers another one, which the other member calls slower than the default.
  EXPECT_DOUBLE_EQ(known({{0, 0}, {-2, 1}, {1, -2}}).interval.value, -1);
  const KnownGain alone = known({{1}, {-1}});
  EXPECT_TRUE(std::isnan(alone.interval.value));
  EXPECT_FALSE(alone.is_better());
}

// Twenty members know the mean gain of 0.6 well, and disagree by more about a single program.
TEST(KnownGain, HasToExceedTheDeviationOfMembers) {
  Values z;
  for (int m = 0; m < 20; ++m) z.push_back(m % 2 == 0 ? -1.6 : 0.4);
  const KnownGain found = known({Values(20, 0), z});
  EXPECT_GT(found.interval.low, 0);
  EXPECT_GT(found.deviation, found.interval.value);
  EXPECT_FALSE(found.is_better());
}

TEST(KnownGain, IsSeldomKnownToNoise) {
  int better = 0;
  CounterRng random(5);
  for (int list = 0; list < 500; ++list) {
    std::vector<Values> z(50, Values(5));
    for (Values& config : z) {
      for (double& score : config) score = random.normal();
    }
    better += known(z).is_better();
  }
  EXPECT_LE(better, 30);
}

}  // namespace
}  // namespace tpudist
