#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "models/losses/losses.hpp"
#include "tests/models/losses/finite_differences.hpp"

namespace tpudist {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr PairOptions kSum{.sum = true};

std::vector<SlateLoss> all_losses() {
  return {diff_mat(0.5, 2),
          pairwise_hinge(1.5),
          pairwise_hinge(0.5, kSum),
          pairwise_logistic(2),
          pairwise_logistic(0.3, kSum),
          pairwise_logistic(1, {.hardest = 1, .top = 2, .top_weight = 3}),
          pairwise_logistic(1, {.permutations = 3})};
}

// No pair of scores comes within the step of a kink, by rejection.
RC_GTEST_PROP(PairwiseLosses, GradientEqualsFiniteDifferences, (std::uint64_t key)) {
  CounterRng rng(key);
  const std::size_t n = 2 + rng.below(8);
  std::vector<double> scores(n), targets(n);
  for (double& score : scores) score = rng.uniform(-3, 3);
  for (double& target : targets) target = static_cast<double>(rng.below(4));  // with ties
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const double distance = std::abs(scores[i] - scores[j]);
      RC_PRE(std::abs(distance - 0.5) > 1e-5 && std::abs(distance - 1.5) > 1e-5);
    }
  }
  for (const auto& loss : all_losses()) RC_ASSERT(gradient_error(loss, scores, targets) < 1e-6);
}

TEST(PairwiseLosses, IgnoreAShiftOfAllScores) {
  const std::vector<double> scores = {0.5, -1, 2}, shifted = {64.5, 63, 66}, targets = {3, 1, 2};
  for (const auto& loss : all_losses()) {
    std::vector<double> gradient(3), of_shifted(3);
    EXPECT_TRUE(loss.is_translation_invariant);
    EXPECT_EQ(loss.evaluate(scores, targets, 0, gradient).loss,
              loss.evaluate(shifted, targets, 0, of_shifted).loss);
    EXPECT_EQ(gradient, of_shifted);
    EXPECT_NEAR(gradient[0] + gradient[1] + gradient[2], 0, 1e-15);
  }
}

TEST(PairwiseLosses, AreSmallestWhenSlowerScoresMore) {
  const std::vector<double> targets = {1, 2, 3};
  for (const auto& loss : all_losses()) {
    std::vector<double> gradient(3);
    const double right = loss.evaluate(std::vector<double>{-20, 0, 20}, targets, 0, gradient).loss;
    const double wrong = loss.evaluate(std::vector<double>{20, 0, -20}, targets, 0, gradient).loss;
    EXPECT_LT(right, 0.01);
    EXPECT_GT(wrong, 5);
  }
}

TEST(PairwiseLosses, OneConfigurationTeachesNothing) {
  for (const auto& loss : all_losses()) {
    std::vector<double> gradient = {5};
    EXPECT_EQ(loss.evaluate(std::vector<double>{3}, std::vector<double>{1}, 0, gradient).loss, 0);
    EXPECT_EQ(gradient[0], 0);
  }
}

// Pairs of equal targets have the sign 0, and so each adds the margin, as in PyTorch.
TEST(DiffMat, CountsPairsOfEqualTargetsWithTheMargin) {
  std::vector<double> gradient(3);
  const double loss =
      diff_mat(0.1, 10)
          .evaluate(std::vector<double>{3, -2, 8}, std::vector<double>{5, 5, 5}, 0, gradient)
          .loss;
  EXPECT_DOUBLE_EQ(loss, 1);
  EXPECT_EQ(gradient, std::vector<double>(3, 0.0));
}

// The mean divides by all K x K pairs, those of equal targets and of each with itself included.
TEST(PairwiseHinge, CountsPairsOfEqualTargetsInTheMeanAlone) {
  std::vector<double> gradient(3);
  const std::vector<double> scores = {0, 0, 0}, targets = {5, 5, 6};
  EXPECT_DOUBLE_EQ(pairwise_hinge(1).evaluate(scores, targets, 0, gradient).loss, 2.0 / 9);
  EXPECT_DOUBLE_EQ(gradient[2], -2.0 / 9);
  EXPECT_DOUBLE_EQ(pairwise_hinge(1, kSum).evaluate(scores, targets, 0, gradient).loss, 2);
}

// Values 10, 6, 4 and two of 0; half of five pairs are three.
TEST(PairwiseHinge, LearnsFromTheHardestPairs) {
  const std::vector<double> scores = {0, 6, 10, 10}, targets = {3, 2, 1, 1};
  std::vector<double> gradient(4);
  const PairOptions options{.sum = true, .hardest = 0.5};
  EXPECT_EQ(pairwise_hinge(0, options).evaluate(scores, targets, 0, gradient).loss, 26);
  EXPECT_EQ(gradient, (std::vector<double>{-3, 1, 1, 1}));
  // The least share is one pair: of equal ones the first.
  const PairOptions least{.sum = true, .hardest = 1e-6};
  EXPECT_EQ(pairwise_hinge(0, least).evaluate(scores, targets, 0, gradient).loss, 10);
  EXPECT_EQ(gradient, (std::vector<double>{-1, 0, 1, 0}));
  const PairOptions half{.hardest = 0.5};
  EXPECT_EQ(pairwise_hinge(0, half).evaluate(scores, targets, 0, gradient).loss,
            26.0 / (16 * 3 / 5.0));
}

TEST(PairwiseHinge, WeighsPairsWithTheFastest) {
  const std::vector<double> scores = {0, 1, 3}, targets = {3, 2, 1};
  std::vector<double> gradient(3);
  const PairOptions options{.sum = true, .top = 1, .top_weight = 10};
  EXPECT_EQ(pairwise_hinge(0, options).evaluate(scores, targets, 0, gradient).loss, 1 + 10 * 5);
  EXPECT_EQ(gradient, (std::vector<double>{-11, -9, 20}));
  const PairOptions more{.sum = true, .top = 9, .top_weight = 2};
  EXPECT_EQ(pairwise_hinge(0, more).evaluate(scores, targets, 0, gradient).loss, 12);
}

// Each configuration has one partner in a permutation; over many of them every pair is as frequent.
TEST(PairwiseHinge, ComparesWithRandomPermutations) {
  const std::vector<double> scores = {4, 2, 1, 0}, targets = {1, 2, 3, 4};
  std::vector<double> gradient(4), again(4), all(4);
  const SlateLoss one = pairwise_hinge(0, {.permutations = 1}),
                  many = pairwise_hinge(0, {.permutations = 1000});
  const double loss = one.evaluate(scores, targets, 7, gradient).loss;
  EXPECT_EQ(one.evaluate(scores, targets, 7, again).loss, loss);
  EXPECT_EQ(again, gradient);
  bool differs = false;
  for (std::uint64_t key = 0; key < 20; ++key)
    differs = differs || one.evaluate(scores, targets, key, again).loss != loss;
  EXPECT_TRUE(differs);
  // A pair comes in both orders.
  EXPECT_NEAR(many.evaluate(scores, targets, 1, again).loss,
              2 * pairwise_hinge(0).evaluate(scores, targets, 1, all).loss, 0.1);
}

TEST(PairwiseLosses, HaveTheGradientOfTheSlopeWhereTheMarginIsMetExactly) {
  std::vector<double> gradient(2);
  const std::vector<double> scores = {0, 0.5}, targets = {1, 2};
  EXPECT_EQ(diff_mat(0.5, 1).evaluate(scores, targets, 0, gradient).loss, 0);
  EXPECT_EQ(gradient, (std::vector<double>{1, -1}));
  EXPECT_EQ(pairwise_hinge(0.5, kSum).evaluate(scores, targets, 0, gradient).loss, 0);
  EXPECT_EQ(gradient, (std::vector<double>{1, -1}));
}

TEST(PairwiseLogistic, DoesNotOverflow) {
  std::vector<double> gradient(2);
  const SlateLoss loss = pairwise_logistic(1, kSum);
  EXPECT_EQ(
      loss.evaluate(std::vector<double>{1e6, -1e6}, std::vector<double>{1, 2}, 0, gradient).loss,
      2e6);
  EXPECT_EQ(gradient, (std::vector<double>{1, -1}));
  EXPECT_EQ(
      loss.evaluate(std::vector<double>{-1e6, 1e6}, std::vector<double>{1, 2}, 0, gradient).loss,
      0);
  EXPECT_EQ(gradient[1], 0);
}

TEST(PairwiseLosses, PassNotANumberOn) {
  for (const auto& loss : all_losses()) {
    std::vector<double> gradient(2);
    EXPECT_TRUE(std::isnan(
        loss.evaluate(std::vector<double>{std::nan(""), 1}, std::vector<double>{1, 2}, 0, gradient)
            .loss));
  }
}

TEST(PairwiseLosses, RefuseWhatTheyCannotRank) {
  for (const auto& loss : all_losses()) {
    std::vector<double> gradient(2);
    for (const double bad : {std::nan(""), kInfinity}) {
      EXPECT_THROW(
          loss.evaluate(std::vector<double>{1, 2}, std::vector<double>{1, bad}, 0, gradient),
          DataError);
    }
    EXPECT_THROW(loss.evaluate(std::vector<double>{1, 2}, std::vector<double>{1}, 0, gradient),
                 Error);
  }
}

}  // namespace
}  // namespace tpudist
