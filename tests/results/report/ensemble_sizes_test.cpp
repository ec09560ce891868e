#include "results/report/variant_rankings.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tpudist {
namespace {

using Scores = std::vector<std::vector<double>>;

TEST(EnsembleSizesTest, EqualMembersScoreAlikeInAnyNumber) {
  EnsembleSizes sizes("layout:xla:random");
  EXPECT_TRUE(sizes.add_graph(Scores(4, {1, 2, 4, 3}), std::vector<double>{10, 20, 30, 40}));
  const std::vector<EnsembleSizes::Size> found = sizes.result();
  ASSERT_EQ(found.size(), 4u);
  for (const EnsembleSizes::Size& size : found) EXPECT_NEAR(size.mean, 2.0 / 3, 1e-15);
  EXPECT_EQ(found[0].subsets, 4);
  EXPECT_EQ(found[1].subsets, 6);
  EXPECT_EQ(found[3].subsets, 1);
  EXPECT_NEAR(found[0].deviation, 0, 1e-12);
  EXPECT_NEAR(found[1].deviation, 0, 1e-12);    // K = M / 2
  EXPECT_TRUE(std::isnan(found[2].deviation));  // beyond
  for (const double without : sizes.without()) EXPECT_NEAR(without, 2.0 / 3, 1e-15);
}

TEST(EnsembleSizesTest, DividesTheDeviationByWhatSubsetsShare) {
  // Taus 1 and -1: their deviation is sqrt(2), of subsets of 1 among 2.
  EnsembleSizes sizes("layout:xla:random");
  EXPECT_TRUE(sizes.add_graph(Scores{{1, 2, 3}, {4, 2, 1}}, std::vector<double>{1, 2, 3}));
  const std::vector<EnsembleSizes::Size> found = sizes.result();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0].mean, 0, 1e-15);
  EXPECT_NEAR(found[0].deviation, std::sqrt(2.0) / std::sqrt(1 - 0.5), 1e-12);
  EXPECT_EQ(sizes.without(), (std::vector<double>{-1, 1}));
}

TEST(EnsembleSizesTest, GraphsThatSayNothingDoNotCount) {
  EnsembleSizes sizes("layout:xla:random");
  EXPECT_FALSE(sizes.add_graph(Scores(2, {1, 1, 1}), std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(sizes.result().empty());
  EXPECT_TRUE(sizes.add_graph(Scores(2, {1, 2, 3}), std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(sizes.add_graph(Scores(3, {1, 2, 3}), std::vector<double>{1, 2, 3}));
  EXPECT_EQ(sizes.graphs(), 1);
}

TEST(EnsembleSizesTest, OneMemberHasNoSizes) {
  EnsembleSizes sizes("layout:xla:random");
  sizes.add_graph(Scores(1, {1, 2, 3}), std::vector<double>{1, 2, 3});
  EXPECT_TRUE(sizes.result().empty());
  EXPECT_TRUE(sizes.without().empty());
}

}  // namespace
}  // namespace tpudist
