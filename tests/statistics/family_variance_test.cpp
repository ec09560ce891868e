#include "statistics/intervals/family_variance.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "core/error.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/score_intervals.hpp"
#include "tests/statistics/golden_scores.hpp"

namespace tpudist {
namespace {

GraphValues values_of(std::uint64_t seed) {
  const RunScoreTable scores = golden_scores(seed);
  return {scores.families, graph_means(scores)};
}

GraphValues one_graph_each(std::size_t count) {
  GraphValues graphs = values_of(1);
  graphs.values.resize(count);
  graphs.families.clear();
  for (std::size_t g = 0; g < count; ++g) graphs.families.push_back("f" + std::to_string(g));
  return graphs;
}

// Golden numbers: tests/golden/statistics_intervals.py, by the matrices of Bell and McCaffrey.
TEST(FamilyVariance, EqualsTheMatricesOfBellAndMcCaffrey) {
  const GraphValues graphs = values_of(1);
  const VarianceEstimate found = family_variance({&graphs, 1});
  EXPECT_NEAR(found.variance, 0.002359577059712771, 1e-14);
  EXPECT_NEAR(found.degrees, 2.3684210526315796, 1e-10);
}

TEST(FamilyVariance, OfOneGraphEachIsThatOfAMean) {
  const GraphValues graphs = one_graph_each(7);
  const VarianceEstimate found = family_variance({&graphs, 1});
  EXPECT_NEAR(found.variance, 0.00202566893424036, 1e-14);
  EXPECT_NEAR(found.variance, std::pow(mean_interval(graphs.values).error, 2), 1e-14);
  EXPECT_NEAR(found.degrees, 6, 1e-10);
}

TEST(FamilyVariance, ClustersFamiliesAcrossCollections) {
  GraphValues second = values_of(11);
  second.values.resize(5);
  second.families = {"a", "a", "b", "c", "e"};
  const std::array both{values_of(1), second};
  const VarianceEstimate found = family_variance(both);
  EXPECT_NEAR(found.variance, 0.0015307208211038244, 1e-14);
  EXPECT_NEAR(found.degrees, 2.7794771961081235, 1e-10);
}

// Two collections with the same graphs and scores say no more than one of them.
TEST(FamilyVariance, DoesNotCountSharedGraphsTwice) {
  const std::array both{values_of(1), values_of(1)};
  const VarianceEstimate one = family_variance(std::span(both).first(1)),
                         two = family_variance(both);
  EXPECT_NEAR(two.variance, one.variance, 1e-15);
  EXPECT_NEAR(two.degrees, one.degrees, 1e-10);
}

TEST(FamilyVariance, RefusesOneFamily) {
  const GraphValues graphs{{"a", "a"}, {0.5, 0.7}};
  EXPECT_THROW(family_variance({&graphs, 1}), Error);
  EXPECT_THROW(family_variance({}), Error);
}

TEST(FamilyBootstrap, EqualsTheEnumerationOfAllSamples) {
  const GraphValues graphs = one_graph_each(6);
  const VarianceEstimate plain = family_variance({&graphs, 1}),
                         found = bootstrap_family_variance(graphs, 0.95, 1);
  const double bound = std::sqrt(found.variance / plain.variance) * t_quantile(0.975, 5);
  EXPECT_NEAR(bound, 2.7659512860862567, 1e-9);
}

// 5,000 draws give nearly the same as 5,000 others.
TEST(FamilyBootstrap, DrawsWhatItCannotEnumerate) {
  GraphValues graphs = one_graph_each(7);
  for (int i = 0; i < 5; ++i) {
    graphs.values.push_back(0.5 + 0.04 * i);
    graphs.families.push_back("more" + std::to_string(i));
  }
  const double first = bootstrap_family_variance(graphs, 0.95, 1).variance,
               second = bootstrap_family_variance(graphs, 0.95, 2).variance;
  EXPECT_NE(first, second);
  EXPECT_NEAR(std::sqrt(first / second), 1, 0.05);
  EXPECT_EQ(first, bootstrap_family_variance(graphs, 0.95, 1).variance);
}

TEST(FamilyBootstrap, RefusesFewOrLargeFamilies) {
  EXPECT_THROW(bootstrap_family_variance(one_graph_each(5), 0.95, 1), Error);
  EXPECT_THROW(bootstrap_family_variance(values_of(1), 0.95, 1), Error);
}

TEST(FamilyBootstrap, OfEqualValuesIsZero) {
  GraphValues graphs = one_graph_each(6);
  graphs.values.assign(6, 0.5);
  EXPECT_EQ(bootstrap_family_variance(graphs, 0.95, 1).variance, 0);
}

}  // namespace
}  // namespace tpudist
