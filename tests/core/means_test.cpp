#include "core/means.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tpudist {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Means, OfAllValues) {
  EXPECT_EQ(mean(std::vector{1.0, 2.0, 6.0}), 3.0);
  EXPECT_TRUE(std::isnan(mean(std::vector{1.0, kNaN})));
  EXPECT_TRUE(std::isnan(mean({})));
}

TEST(Means, OfKnownValues) {
  EXPECT_EQ(mean_of_known(std::vector{kNaN, 1.0, kNaN, 4.0}), 2.5);
  EXPECT_TRUE(std::isnan(mean_of_known(std::vector{kNaN, kNaN})));
  EXPECT_TRUE(std::isnan(mean_of_known({})));
}

TEST(Means, SquaresAround) {
  EXPECT_EQ(squares_around(std::vector{1.0, 4.0}, 3.0), 5.0);
  EXPECT_EQ(squares_around({}, 3.0), 0.0);
}

TEST(Means, Median) {
  const std::vector odd{5.0, -1.0, 2.0}, even{4.0, 1.0, 3.0, 10.0};
  EXPECT_EQ(median(odd), 2.0);
  EXPECT_EQ(median(even), 3.5);
}

// As numpy.quantile.
TEST(Means, Quantile) {
  const std::vector values{5.0, 1.0, 3.0, 10.0};
  EXPECT_EQ(quantile(values, 0), 1.0);
  EXPECT_EQ(quantile(values, 0.25), 2.5);
  EXPECT_EQ(quantile(values, 1), 10.0);
  EXPECT_EQ(quantile({7.0}, 0.3), 7.0);
}

TEST(Means, Ranks) {
  EXPECT_EQ(mean_ranks(std::vector{5.0, 1.0, 5.0, 10.0}), (std::vector{2.5, 1.0, 2.5, 4.0}));
}

}  // namespace
}  // namespace tpudist
