#include "statistics/intervals/power.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "statistics/intervals/distributions.hpp"

namespace tpudist {
namespace {

VarianceEstimate of_runs(int runs, double scale) {
  return {scale * 2.0 / runs, 2.0 * (runs - 1)};
}

// statsmodels' TTestIndPower asks for 33.02 runs of each side at a difference of 0.7 deviations.
TEST(NeededNumber, EqualsStatsmodels) {
  EXPECT_EQ(needed_number(0.7, 4, of_runs).number, 34);
  EXPECT_EQ(needed_number(-0.7, 4, of_runs).number, 34);
  EXPECT_EQ(needed_number(50, 4, of_runs).number, 2);
}

TEST(NeededNumber, IsRoughWhereSpreadsAre) {
  const NeededRange few = needed_number(0.7, 4, of_runs), many = needed_number(0.7, 400, of_runs);
  EXPECT_LT(*few.low, *many.low);
  EXPECT_GT(*few.high, *many.high);
  EXPECT_LT(*many.low, 34);
  EXPECT_GT(*many.high, 34);
}

TEST(NeededNumber, IsNothingWhereItIsNotWhatIsMissing) {
  const auto floor = [](int runs, double scale) {
    return VarianceEstimate{scale * (0.01 + 1.0 / runs), 3};
  };
  EXPECT_FALSE(needed_number(0.01, 3, floor).number);
}

TEST(ShakeUp, OfAnEvenRaceIsAHalf) {
  const ShakeUp even = shake_up(0, {0.0004, 6});
  EXPECT_DOUBLE_EQ(even.chance, 0.5);
  EXPECT_NEAR(even.regret, 0.02 * expected_loss(0, 6, 2 / 0.02), 1e-12);
  EXPECT_TRUE(std::isnan(shake_up(0.1, {0, 6}).chance));  // a spread of 0 is not known
}

TEST(ShakeUp, IsSurerOfLargerDifferences) {
  EXPECT_GT(shake_up(0.05, {0.0004, 6}).chance, shake_up(0.02, {0.0004, 6}).chance);
  EXPECT_LT(shake_up(0.05, {0.0004, 6}).regret, shake_up(0.02, {0.0004, 6}).regret);
}

// Two families leave one degree of freedom, or a little more by rounding.
TEST(ShakeUp, LosesNoMoreThanThereIs) {
  for (const double degrees : {1.0, 1 + 1e-12, 1.5}) {
    const ShakeUp found = shake_up(0.05, {0.01, degrees});
    EXPECT_GT(found.regret, 0);
    EXPECT_LT(found.regret, kLargestDifference);
  }
}

TEST(Detectable, IsWhatATTestFinds) {
  const double found = detectable(2.0 / 3, 4);
  EXPECT_NEAR(t_test_power(found / std::sqrt(2.0 / 3), 4, 0.05), 0.8, 1e-6);
  // With many runs a difference of 2.80 standard errors is found in 80 % (1.960 + 0.842).
  EXPECT_NEAR(detectable(1, 1e6), 2.802, 1e-3);
}

}  // namespace
}  // namespace tpudist
