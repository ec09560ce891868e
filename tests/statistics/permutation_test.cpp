#include "statistics/permutation.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"
#include "tests/statistics/golden_scores.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

// Golden numbers: tests/golden/statistics_comparison.py.
TEST(PermutationTest, EqualsSciPysOverRuns) {
  const LabelGroup runs{run_means(golden_scores(1)), run_means(golden_scores(11))};
  const PermutationTest found = permutation_test({&runs, 1}, 1);
  EXPECT_NEAR(found.difference, 0.038285714285714256, 1e-12);
  EXPECT_DOUBLE_EQ(found.p, 0.1);
  EXPECT_EQ(found.labellings, 20);
  EXPECT_DOUBLE_EQ(found.smallest_p, 0.1);
  EXPECT_FALSE(found.can_tell());
  EXPECT_TRUE(found.exact);
}

TEST(PermutationTest, EqualsSciPysOfUnevenSides) {
  const Values b = golden_scores(11).scores[0];
  const LabelGroup runs{golden_scores(1).scores[0], {b[0], b[1]}};
  const PermutationTest found = permutation_test({&runs, 1}, 1);
  EXPECT_NEAR(found.difference, 0.03949999999999998, 1e-12);
  EXPECT_DOUBLE_EQ(found.p, 0.2);
  EXPECT_DOUBLE_EQ(found.smallest_p, 0.1);  // mirrored labels are no labelling of 3 and 2
}

// Signs of n families flipped: exchanging the two sides of each.
TEST(PermutationTest, OfFourFamiliesCannotReachFivePercent) {
  std::vector<LabelGroup> families;
  for (const double sum : {0.3, 0.2, 0.1, 0.4}) families.push_back({{sum / 2}, {-sum / 2}});
  const PermutationTest four = permutation_test(families, 1);
  EXPECT_DOUBLE_EQ(four.p, 0.125);
  EXPECT_DOUBLE_EQ(four.smallest_p, 0.125);
  EXPECT_FALSE(four.can_tell());
  for (const double sum : {0.2, 0.1}) families.push_back({{sum / 2}, {-sum / 2}});
  EXPECT_DOUBLE_EQ(permutation_test(families, 1).p, 2.0 / 64);
  EXPECT_TRUE(permutation_test(families, 1).can_tell());
}

// Many groups are split into two halves; the same labellings counted one by one.
TEST(PermutationTest, CountsHalvesAsItCountsAll) {
  std::vector<LabelGroup> groups;
  Values sums{0};
  double observed = 0;
  for (int i = 0; i < 10; ++i) {
    const double own = 0.01 * (i * 7 % 5) - 0.013 + 0.001 * i;
    groups.push_back({{own / 2}, {-own / 2}});
    observed += own;
    Values next;
    for (const double sum : sums) {
      next.push_back(sum + own);
      next.push_back(sum - own);
    }
    sums = next;
  }
  double beyond = 0;
  for (const double sum : sums) beyond += std::abs(sum) >= std::abs(observed) - 1e-12;
  EXPECT_DOUBLE_EQ(permutation_test(groups, 1).p, beyond / 1024);
}

TEST(PermutationTest, CountsTiesByTheirValue) {
  const LabelGroup runs{{0.1 + 0.2, 0.1}, {0.3, 0.1}};
  EXPECT_DOUBLE_EQ(permutation_test({&runs, 1}, 1).p, 1);
}

// 40 runs have 1.4e11 labellings: drawn, close to what is counted of a normal sum.
TEST(PermutationTest, DrawsWhereThereAreTooManyLabellings) {
  LabelGroup runs;
  for (int i = 0; i < 20; ++i) {
    runs.a.push_back(0.70 + 0.001 * (i * 7 % 20) + 0.004);
    runs.b.push_back(0.70 + 0.001 * (i * 3 % 20));
  }
  const PermutationTest found = permutation_test({&runs, 1}, 1);
  EXPECT_FALSE(found.exact);
  EXPECT_NEAR(found.p, 0.0365, 0.006);  // by t(38) of the difference 0.004, error 0.00187
  EXPECT_EQ(found.p, permutation_test({&runs, 1}, 1).p);
  EXPECT_NE(found.p, permutation_test({&runs, 1}, 2).p);
}

TEST(PermutationTest, OfEqualSidesIsOne) {
  const LabelGroup runs{{0.5, 0.7}, {0.7, 0.5}};
  EXPECT_EQ(permutation_test({&runs, 1}, 1).p, 1);
}

TEST(PermutationTest, RefusesOneSideAndNaN) {
  const LabelGroup empty{{0.5}, {}}, broken{{0.5}, {std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_THROW(permutation_test({&empty, 1}, 1), Error);
  EXPECT_THROW(permutation_test({&broken, 1}, 1), DataError);
}

}  // namespace
}  // namespace tpudist
