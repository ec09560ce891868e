#include "statistics/power.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "statistics/distributions.hpp"

namespace tpudist {
namespace {

// statsmodels' TTestIndPower asks for 33.02 runs of each side at a difference of 0.7 deviations.
TEST(RunsNeeded, EqualsStatsmodels) {
  const auto variance = [](int runs) { return VarianceEstimate{2.0 / runs, 2.0 * (runs - 1)}; };
  EXPECT_EQ(runs_needed(0.7, variance), 34);
  EXPECT_EQ(runs_needed(-0.7, variance), 34);
  EXPECT_EQ(runs_needed(50, variance), 2);
}

TEST(RunsNeeded, IsNothingWhereRunsAreNotWhatIsMissing) {
  EXPECT_FALSE(runs_needed(0.01, [](int runs) { return VarianceEstimate{0.01 + 1.0 / runs, 3}; }));
  EXPECT_FALSE(runs_needed(0, [](int) { return VarianceEstimate{0, 3}; }));
}

TEST(DetectableDifference, IsFoundInEightOfTenCases) {
  const VarianceEstimate variance{0.0004, 2.4};
  const double difference = detectable_difference(variance);
  EXPECT_NEAR(t_test_power(difference / 0.02, 2.4, 0.05), 0.8, 1e-9);
  EXPECT_EQ(detectable_difference({0, 3}), 0);
}

TEST(ShakeUp, OfAnEvenRaceIsAHalf) {
  const ShakeUp even = shake_up(0, {0.0004, 6});
  EXPECT_DOUBLE_EQ(even.chance, 0.5);
  EXPECT_NEAR(even.regret, std::sqrt(0.0008) * expected_loss(0, 6), 1e-12);
  EXPECT_EQ(shake_up(0.1, {0, 6}).chance, 1);
}

TEST(ShakeUp, IsSurerOfLargerDifferences) {
  EXPECT_GT(shake_up(0.05, {0.0004, 6}).chance, shake_up(0.02, {0.0004, 6}).chance);
  EXPECT_LT(shake_up(0.05, {0.0004, 6}).regret, shake_up(0.02, {0.0004, 6}).regret);
}

}  // namespace
}  // namespace tpudist
