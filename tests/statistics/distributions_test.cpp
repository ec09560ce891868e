#include "statistics/distributions.hpp"

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
  EXPECT_NEAR(expected_loss(0, 3.5), 0.5204812812249338, 1e-9);
  EXPECT_NEAR(expected_loss(0.8, 3.5), 0.23214312658266983, 1e-9);
  EXPECT_NEAR(expected_loss(2.5, 3.5), 0.0500037077774185, 1e-8);
  EXPECT_TRUE(std::isinf(expected_loss(1, 1)));
}

TEST(Distributions, RefuseWhatIsNoProbabilityOrDegrees) {
  EXPECT_THROW(t_quantile(1, 3), Error);
  EXPECT_THROW(t_quantile(0.5, 0), Error);
  EXPECT_THROW(t_quantile(0.5, std::nan("")), Error);
  EXPECT_THROW(chi_square_quantile(-0.1, 3), Error);
}

}  // namespace
}  // namespace tpudist
