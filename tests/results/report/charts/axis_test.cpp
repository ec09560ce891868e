#include "results/report/charts/plot_area.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace tpudist {
namespace {

using ::testing::ElementsAre;

TEST(AxisTest, TicksAreWholeMultiplesOfNiceSteps) {
  const Axis axis = linear_axis(0.43, 0.92, 7);
  EXPECT_THAT(axis.labels, ElementsAre("0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"));
  EXPECT_DOUBLE_EQ(axis.low, 0.4);
  EXPECT_DOUBLE_EQ(axis.high, 1.0);
  EXPECT_NEAR(axis.place(0.7), 0.5, 1e-12);
  EXPECT_THAT(linear_axis(0, 600, 7, false).labels,
              ElementsAre("0", "100", "200", "300", "400", "500", "600"));
  EXPECT_THAT(linear_axis(-1, 1, 5).labels, ElementsAre("-1.0", "-0.5", "0.0", "0.5", "1.0"));
}

TEST(AxisTest, EqualOrUnusableEndsGiveARangeAllTheSame) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [low, high] :
       {std::pair(3.0, 3.0), {0.0, 0.0}, {infinity, -infinity}, {2.0, 1.0}}) {
    const Axis axis = linear_axis(low, high, 5);
    EXPECT_LT(axis.low, axis.high);
    EXPECT_FALSE(axis.ticks.empty());
  }
  EXPECT_LT(log_axis(0, infinity, 5).low, log_axis(0, infinity, 5).high);
}

TEST(AxisTest, LogarithmicTicks) {
  const Axis axis = log_axis(1, 100, 9);
  EXPECT_THAT(axis.labels, ElementsAre("1", "2", "5", "10", "20", "50", "100"));
  EXPECT_DOUBLE_EQ(axis.place(10), 0.5);
  EXPECT_THAT(log_axis(1, 100000, 6).labels,
              ElementsAre("1", "10", "100", "1000", "10000", "100000"));
}

RC_GTEST_PROP(AxisTest, HoldsTheRangeAndKeepsToItsNumberOfTicks, (int a, int b)) {
  const double low = 1e-3 * a, high = 1e-3 * b;
  const Axis axis = linear_axis(low, high, 6);
  RC_ASSERT(axis.low <= std::min(low, high) + 1e-9 * std::abs(low) + 1e-12);
  RC_ASSERT(axis.high >= std::max(low, high) - 1e-9 * std::abs(high) - 1e-12);
  RC_ASSERT(axis.ticks.size() >= 2u);
  RC_ASSERT(axis.ticks.size() <= 7u);
}

}  // namespace
}  // namespace tpudist
