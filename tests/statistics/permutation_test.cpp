#include "statistics/intervals/permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "tests/statistics/golden_scores.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

// Golden numbers: tests/golden/statistics_comparison.py.
TEST(LabelTest, EqualsAnEnumerationInPython) {
  const auto found = label_test(run_means(golden_scores(1)), run_means(golden_scores(11)), 1);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->p, 0.1);
  EXPECT_EQ(found->labellings, 20);
  EXPECT_DOUBLE_EQ(found->smallest_p, 0.1);
  EXPECT_FALSE(found->can_tell());
  EXPECT_TRUE(found->exact);
  const Values four{0.71, 0.74, 0.69, 0.73}, others{0.66, 0.70, 0.675, 0.655};
  EXPECT_NEAR(label_test(four, others, 1)->p, 0.05714285714285714, 1e-12);
}

TEST(LabelTest, EqualsAnEnumerationOfUnevenSides) {
  const auto found = label_test(Values{0.71, 0.74, 0.69, 0.73}, Values{0.66, 0.70}, 1);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->p, 0.2);
  EXPECT_DOUBLE_EQ(found->smallest_p, 1.0 / 15);  // mirrored labels are none of 4 and 2
}

TEST(LabelTest, IsNotOfFewRunsBesideOtherSpreadsOrNumbers) {
  const Values few{0.5, 0.7, 0.9}, alike{0.4, 0.6, 0.7}, narrow{0.60, 0.61, 0.60};
  EXPECT_TRUE(label_test(few, alike, 1));
  EXPECT_FALSE(label_test(few, narrow, 1));
  EXPECT_FALSE(label_test(few, Values(10, 0.5), 1));
  EXPECT_FALSE(label_test(few, Values{0.6}, 1));
  // Of five and five with spreads of 5 to 1, p would be below 0.05 for 8.6 % of equal sides.
  Values wide{0.1, 0.3, 0.5, 0.7, 0.9}, five{0.60, 0.61, 0.60, 0.62, 0.61};
  EXPECT_FALSE(label_test(wide, five, 1));
  for (Values* own : {&wide, &five}) own->insert(own->end(), own->begin(), own->begin() + 5);
  EXPECT_TRUE(label_test(wide, five, 1));  // studentised, it holds for more runs
}

TEST(LabelTest, OfEqualSidesIsOne) {
  EXPECT_EQ(label_test(Values{0.5, 0.7}, Values{0.7, 0.5}, 1)->p, 1);
  EXPECT_EQ(label_test(Values{0.5, 0.5}, Values{0.5, 0.5}, 1)->p, 1);
  // No spread at all: two of the six labellings have none either.
  EXPECT_DOUBLE_EQ(label_test(Values{0.7, 0.7}, Values{0.5, 0.5}, 1)->p, 2.0 / 6);
}

// 40 runs have 1.4e11 labellings: drawn, close to what is counted of a normal sum.
TEST(LabelTest, DrawsWhereThereAreTooManyLabellings) {
  Values a, b;
  for (int i = 0; i < 20; ++i) {
    a.push_back(0.70 + 0.001 * (i * 7 % 20) + 0.004);
    b.push_back(0.70 + 0.001 * (i * 3 % 20));
  }
  const auto found = label_test(a, b, 1);
  EXPECT_FALSE(found->exact);
  EXPECT_NEAR(found->p, 0.0416, 0.003);  // 100,000 labellings drawn by NumPy
  EXPECT_NE(found->p, label_test(a, b, 2)->p);
  // Neither the order of runs nor which side is called A matters.
  std::ranges::reverse(a);
  EXPECT_EQ(found->p, label_test(a, b, 1)->p);
  EXPECT_EQ(found->p, label_test(b, a, 1)->p);
}

TEST(LabelTest, RefusesOneSideAndNaN) {
  EXPECT_THROW(label_test(Values{0.5}, Values{}, 1), Error);
  EXPECT_THROW(label_test(Values{0.5, std::numeric_limits<double>::quiet_NaN()}, Values{0.5}, 1),
               DataError);
}

TEST(SignTest, OfFourFamiliesCannotReachFivePercent) {
  const PermutationTest four = sign_test(Values{0.3, 0.2, 0.1, 0.4}, 1);
  EXPECT_DOUBLE_EQ(four.p, 0.125);
  EXPECT_DOUBLE_EQ(four.smallest_p, 0.125);
  EXPECT_FALSE(four.can_tell());
  const PermutationTest six = sign_test(Values{0.3, 0.2, 0.1, 0.4, 0.2, 0.1}, 1);
  EXPECT_DOUBLE_EQ(six.p, 2.0 / 64);
  EXPECT_TRUE(six.can_tell());
  EXPECT_EQ(sign_test(Values{0.1, -0.1}, 1).p, 1);
}

// Values are split into two halves; the same signs counted one by one.
TEST(SignTest, CountsHalvesAsItCountsAll) {
  Values values, sums{0};
  double observed = 0;
  for (int i = 0; i < 11; ++i) {
    const double own = 0.01 * (i * 7 % 5) - 0.013 + 0.001 * i;
    values.push_back(own);
    observed += own;
    Values next;
    for (const double sum : sums) {
      next.push_back(sum + own);
      next.push_back(sum - own);
    }
    sums = next;
  }
  const double beyond = static_cast<double>(std::ranges::count_if(
      sums, [&](double sum) { return std::abs(sum) >= std::abs(observed) - 1e-12; }));
  EXPECT_DOUBLE_EQ(sign_test(values, 1).p, beyond / 2048);
}

TEST(SignTest, DrawsTheSameForEitherSide) {
  Values values, mirrored;
  for (int i = 0; i < 50; ++i) {
    values.push_back(0.01 * (i * 7 % 5) - 0.013);
    mirrored.insert(mirrored.begin(), -values.back());
  }
  const PermutationTest found = sign_test(values, 1);
  EXPECT_FALSE(found.exact);
  EXPECT_EQ(found.p, sign_test(mirrored, 1).p);
}

}  // namespace
}  // namespace tpudist
