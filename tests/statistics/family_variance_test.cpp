#include "statistics/intervals/family_variance.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "core/error.hpp"
#include "tests/statistics/golden_scores.hpp"

namespace tpudist {
namespace {

GraphValues values_of(std::uint64_t seed) {
  const RunScoreTable scores = golden_scores(seed);
  return {scores.families, graph_means(scores)};
}

// Golden numbers: tests/golden/statistics_intervals.py, by the matrices of Bell and McCaffrey.
TEST(FamilyVariance, EqualsTheMatricesOfBellAndMcCaffrey) {
  const GraphValues graphs = values_of(1);
  const VarianceEstimate found = family_variance({&graphs, 1});
  EXPECT_NEAR(found.variance, 0.002359577059712771, 1e-14);
  EXPECT_NEAR(found.degrees, 2.3684210526315796, 1e-10);
}

TEST(FamilyVariance, OfOneGraphEachIsThatOfAMean) {
  GraphValues graphs = values_of(1);
  graphs.families = {"a", "b", "c", "d", "e", "f", "g"};
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

using Names = std::vector<std::string>;

TEST(FamilyClusters, BertsAreOneAmongOthers) {
  const Names families = {"albert", "bert_l2", "bert_l12", "bert_l2", "electra", "transformer"};
  const FamilyClusters clusters = family_clusters(families);
  EXPECT_EQ(clusters.of, (Names{"bert", "bert", "bert", "bert", "bert", "transformer"}));
  EXPECT_EQ(clusters.note,
            "4 of 5 model families are BERTs: they score alike and count as one family");
}

TEST(FamilyClusters, AreFamiliesWhereAllAreBertsOrNone) {
  const Names berts = {"bert", "bert_l2", "talking_heads"}, others = {"bert", "resnet", "resnet"};
  EXPECT_EQ(family_clusters(berts).of, berts);
  EXPECT_EQ(family_clusters(berts).note,
            "3 of 3 model families are BERTs: \"other families\" are other BERTs");
  EXPECT_EQ(family_clusters(others).of, others);
  EXPECT_EQ(family_clusters(others).note, "");
  EXPECT_EQ(family_clusters({}).note, "");
}

}  // namespace
}  // namespace tpudist
