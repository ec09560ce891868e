#include "statistics/intervals/distributions.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"

namespace tpudist {
namespace {

// Golden numbers: tests/golden/statistics_comparison.py.
TEST(Distributions, QuantilesEqualSciPy) {
  EXPECT_NEAR(t_quantile(0.975, 2.37), 3.7189208397974567, 1e-12);
  EXPECT_NEAR(t_quantile(0.9, 1), 3.0776835371752544, 1e-12);
  EXPECT_NEAR(t_quantile(0.3, 60), -0.5271981272297472, 1e-12);
  EXPECT_NEAR(chi_square_quantile(0.05, 6), 1.6353828943279067, 1e-12);
  EXPECT_NEAR(chi_square_quantile(0.95, 6.5), 13.334322333443504, 1e-11);
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

}  // namespace
}  // namespace tpudist
