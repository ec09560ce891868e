#include "statistics/intervals/distributions.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "statistics/intervals/power.hpp"

namespace tpudist {
namespace {

// Golden numbers: tests/golden/statistics_comparison.py.
TEST(Distributions, QuantilesEqualSciPy) {
  EXPECT_NEAR(t_quantile(0.975, 2.37), 3.7189208397974567, 1e-12);
  EXPECT_NEAR(t_quantile(0.9, 1), 3.0776835371752544, 1e-12);
  EXPECT_NEAR(t_quantile(0.3, 60), -0.5271981272297472, 1e-12);
  EXPECT_NEAR(chi_square_quantile(0.05, 6), 1.6353828943279067, 1e-12);
  EXPECT_NEAR(chi_square_quantile(0.95, 6.5), 13.334322333443504, 1e-11);
  EXPECT_NEAR(f_quantile(0.05, 2.5, 12), 0.08335215164485328, 1e-12);
  EXPECT_NEAR(f_quantile(0.95, 6, 8), 3.5805803197614616, 1e-11);
}

TEST(Distributions, ProbabilitiesAreThoseOfQuantiles) {
  for (const double degrees : {0.7, 2.37, 60.0, 1e12}) {
    EXPECT_NEAR(t_probability(t_quantile(0.8, degrees), degrees), 0.8, 1e-12);
    EXPECT_NEAR(two_sided_p(-t_quantile(0.975, degrees), degrees), 0.05, 1e-12);
  }
}

TEST(Distributions, PowerEqualsSciPysNoncentralT) {
  EXPECT_NEAR(t_test_power(3.1, 4, 0.05), 0.6461552769020837, 1e-9);
  EXPECT_NEAR(t_test_power(-3.1, 4, 0.05), 0.6461552769020837, 1e-9);
  EXPECT_EQ(t_test_power(0, 4, 0.05), 0.05);
  EXPECT_EQ(t_test_power(1e6, 4, 0.05), 1);
}

TEST(Distributions, ExpectedLossEqualsItsIntegral) {
  EXPECT_NEAR(expected_loss(0, 3.5, 1e4), 0.520481281153744, 1e-8);
  EXPECT_NEAR(expected_loss(0.8, 3.5, 1e4), 0.23214312651149335, 1e-8);
  EXPECT_NEAR(expected_loss(2.5, 3.5, 3), 0.04081209237531064, 1e-9);
  // Without a bound it has no mean with one degree of freedom.
  EXPECT_NEAR(expected_loss(1, 1, 50), 1.2095514500373563, 1e-8);
}

TEST(Distributions, StudentizedRangeEqualsSciPys) {
  EXPECT_NEAR(range_probability(3.5, 3, 10), 0.9228966891615896, 1e-6);
  EXPECT_NEAR(range_probability(3.5, 8, 16), 0.7275822470024005, 1e-6);
  EXPECT_NEAR(range_probability(2, 2, 4), 0.7698003589195012, 1e-6);
  EXPECT_NEAR(range_quantile(0.95, 3, 6), 4.3391954765202785, 1e-4);
  EXPECT_NEAR(range_quantile(0.95, 8, 16), 4.896220466029124, 1e-4);
  EXPECT_NEAR(range_quantile(0.95, 4, 4), 5.757060383399763, 1e-4);
  // Of two it is the square root of 2 times |t|.
  EXPECT_NEAR(range_quantile(0.95, 2, 2), std::sqrt(2.0) * t_quantile(0.975, 2), 2e-4);
}

TEST(Distributions, RefuseWhatIsNoProbabilityOrDegrees) {
  EXPECT_THROW(t_quantile(1, 3), Error);
  EXPECT_THROW(t_quantile(0.5, 0), Error);
  EXPECT_THROW(t_quantile(0.5, std::nan("")), Error);
  EXPECT_THROW(chi_square_quantile(-0.1, 3), Error);
}

// Golden numbers: tests/golden/statistics_comparison.py.
TEST(RateBound, EqualsClopperAndPearson) {
  EXPECT_NEAR(rate_bound(0, 3), 0.6315968501359612, 1e-12);
  EXPECT_NEAR(rate_bound(1, 10), 0.39416330243650466, 1e-12);
  EXPECT_EQ(rate_bound(4, 4), 1);
}

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
