#include "results/report/variant_pairs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "results/report/variant_rankings.hpp"

namespace tpudist::test {
namespace {

ReportedVariant variant_of(const std::string& title, std::vector<std::vector<double>> scores) {
  ReportedVariant variant;
  variant.title = title;
  variant.collection = "layout:xla:random";
  for (std::size_t g = 0; g < scores.size(); ++g) {
    variant.valid.graphs.push_back("g" + std::to_string(g));
    variant.valid.families.push_back("f" + std::to_string(g));
  }
  variant.valid.scores = std::move(scores);
  return variant;
}

// The first one lacks the hardest graph, so that its own mean is the highest.
TEST(VariantPairs, NameTheBestOnTheGraphsThatAllHave) {
  ReportInput input;
  input.variants = {variant_of("a", {{0.75, 0.76}}), variant_of("b", {{0.85, 0.86}, {0.2, 0.21}})};
  const VariantComparison found = compare_variants(input, "layout:xla:random");
  EXPECT_EQ(found.best, 1u);
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(found.pairs[0].a, 1u);
  EXPECT_NEAR(found.pairs[0].difference, 0.1, 1e-12);
}

// Trainings that score alike tell nothing of others.
TEST(VariantPairs, OfEqualTrainingsHaveNoP) {
  ReportInput input;
  input.variants = {variant_of("a", {{0.75, 0.75}}), variant_of("b", {{0.7, 0.7}})};
  const VariantComparison found = compare_variants(input, "layout:xla:random");
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_FALSE(found.pairs[0].trainings || found.pairs[0].p || found.pairs[0].shown());
  EXPECT_TRUE(found.pairs[0].alike);
}

// Without pairs, too, a mean that is no number is not the best.
TEST(VariantPairs, AVariantWithoutAMeanIsNotTheBest) {
  ReportInput input;
  const double none = std::numeric_limits<double>::quiet_NaN();
  input.variants = {variant_of("a", {{none}}), variant_of("b", {{0.7}}), variant_of("c", {{0.8}})};
  EXPECT_EQ(compare_variants(input, "layout:xla:random").best, 2u);
}

TEST(VariantPairs, NameTheTest) {
  const auto method_of = [](const std::vector<std::vector<double>>& runs) {
    ReportInput input;
    for (const std::vector<double>& scores : runs)
      input.variants.push_back(variant_of("", {scores}));
    return compare_variants(input, "layout:xla:random").method;
  };
  EXPECT_EQ(method_of({{0.75, 0.76, 0.77}, {0.85, 0.86, 0.87}, {0.65, 0.66, 0.67}}),
            "Tukey's test");
  EXPECT_EQ(method_of({{0.75, 0.76, 0.77}, {0.85, 0.86, 0.87}}), "Welch's t test");
  EXPECT_EQ(method_of({{0.75}, {0.85}}), "");
}

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
}  // namespace tpudist::test
