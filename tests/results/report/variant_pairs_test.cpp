#include "results/report/variant_pairs.hpp"

#include <gmock/gmock.h>

namespace tpudist {
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

TEST(VariantPairs, HaveAVariantWithoutAMeanLast) {
  ReportInput input;
  const double none = std::numeric_limits<double>::quiet_NaN();
  input.variants = {variant_of("a", {{none}}), variant_of("b", {{0.7}}), variant_of("c", {{0.8}})};
  const VariantComparison found = compare_variants(input, "layout:xla:random");
  EXPECT_EQ(found.best, 2u);
  ASSERT_EQ(found.pairs.size(), 3u);
  for (const VariantComparison::Pair& pair : found.pairs) EXPECT_NE(pair.a, 0u);
  EXPECT_EQ(found.pairs[1].b, 0u);
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

}  // namespace
}  // namespace tpudist
