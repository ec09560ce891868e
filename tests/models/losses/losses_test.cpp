#include "models/losses/losses.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

constexpr double kNoClip = std::numeric_limits<double>::infinity();
constexpr PairOptions kSum{.sum = true};

// The largest difference between the gradient of a loss and central differences of its values.
double gradient_error(const SlateLoss& loss, std::vector<double> scores,
                      const std::vector<double>& targets, std::uint64_t tie_key = 1) {
  constexpr double step = 1e-6;
  std::vector<double> gradient(scores.size()), ignored(scores.size());
  loss.evaluate(scores, targets, tie_key, gradient);
  double error = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double at = scores[i];
    scores[i] = at + step;
    const double above = loss.evaluate(scores, targets, tie_key, ignored).loss;
    scores[i] = at - step;
    const double below = loss.evaluate(scores, targets, tie_key, ignored).loss;
    scores[i] = at;
    error = std::max(error, std::abs((above - below) / (2 * step) - gradient[i]));
  }
  return error;
}

std::vector<SlateLoss> pair_losses() {
  return {diff_mat(0.5, 2),
          pairwise_hinge(1.5),
          pairwise_hinge(0.5, kSum),
          pairwise_logistic(2),
          pairwise_logistic(0.3, kSum),
          pairwise_logistic(1, {.hardest = 1, .top = 2, .top_weight = 3}),
          pairwise_logistic(1, {.permutations = 3})};
}

// Losses of differences of scores.
std::vector<SlateLoss> ranking_losses() {
  std::vector<SlateLoss> all = pair_losses();
  all.push_back(list_mle(kNoClip));
  return all;
}

std::vector<SlateLoss> all_losses() {
  std::vector<SlateLoss> all = ranking_losses();
  all.insert(all.end(), {list_mle(500), mape(), mse()});
  return all;
}

// No pair of scores comes within the step of a kink, by rejection.
RC_GTEST_PROP(RankingLosses, GradientEqualsFiniteDifferences, (std::uint64_t key)) {
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
  for (const auto& loss : ranking_losses()) RC_ASSERT(gradient_error(loss, scores, targets) < 1e-6);
}

TEST(RankingLosses, IgnoreAShiftOfAllScores) {
  const std::vector<double> scores = {0.5, -1, 2}, shifted = {64.5, 63, 66}, targets = {3, 1, 2};
  for (const auto& loss : ranking_losses()) {
    std::vector<double> gradient(3), of_shifted(3);
    EXPECT_TRUE(loss.is_translation_invariant);
    EXPECT_EQ(loss.evaluate(scores, targets, 0, gradient).loss,
              loss.evaluate(shifted, targets, 0, of_shifted).loss);
    EXPECT_EQ(gradient, of_shifted);
    EXPECT_NEAR(gradient[0] + gradient[1] + gradient[2], 0, 1e-15);
  }
}

TEST(PairLosses, AreSmallestWhenSlowerScoresMore) {
  const std::vector<double> targets = {1, 2, 3};
  for (const auto& loss : pair_losses()) {
    std::vector<double> gradient(3);
    const double right = loss.evaluate(std::vector<double>{-20, 0, 20}, targets, 0, gradient).loss;
    const double wrong = loss.evaluate(std::vector<double>{20, 0, -20}, targets, 0, gradient).loss;
    EXPECT_LT(right, 0.01);
    EXPECT_GT(wrong, 5);
  }
}

TEST(RankingLosses, OneConfigurationTeachesNothing) {
  for (const auto& loss : ranking_losses()) {
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

TEST(PairLosses, HaveTheGradientOfTheSlopeWhereTheMarginIsMetExactly) {
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

TEST(Losses, PassNotANumberOn) {
  for (const auto& loss : all_losses()) {
    std::vector<double> gradient(2);
    EXPECT_TRUE(std::isnan(
        loss.evaluate(std::vector<double>{std::nan(""), 1}, std::vector<double>{1, 2}, 0, gradient)
            .loss));
  }
}

TEST(Losses, RefuseWhatTheyCannotRank) {
  for (const auto& loss : all_losses()) {
    std::vector<double> gradient(2);
    for (const double bad : {std::nan(""), kNoClip}) {
      EXPECT_THROW(
          loss.evaluate(std::vector<double>{1, 2}, std::vector<double>{1, bad}, 0, gradient),
          DataError);
    }
    EXPECT_THROW(loss.evaluate(std::vector<double>{1, 2}, std::vector<double>{1}, 0, gradient),
                 Error);
  }
}

// tests/golden/list_mle.py
TEST(ListMle, EqualsAllRankWithAutograd) {
  const std::vector<double> scores = {0.5, -1.25, 3.0, 0.75, -40.0}, targets = {3, 9, 1, 4, 2};
  const struct {
    double clip_norm, temperature, loss;
    std::vector<double> gradient;
  } golden[] = {
      {1e9,
       1.0,
       52.43450424976,
       {-0.7867120498454, -0.9881304329341, 3.59837916491, -0.8235366821302, -1.0}},
      {2.0,
       1.0,
       5.767023868674,
       {-0.001330857454052, -0.03749840385002, 0.09671325609772, -0.02327050248744,
        0.007972361687827}},
      {1e9,
       8.0,
       9.093655197041,
       {-0.005913842996119, -0.1011335617114, 0.2871952811554, -0.05647785445541,
        -0.1236700219924}},
      // Scores of norm 40: the temperature divides them to 160, which is clipped, and to 5, which
      // is not.
      {30.0,
       0.25,
       39.62235751248,
       {-0.4895440925951, -0.6955851710707, 2.422911775643, -0.5604975139842, 0.1868267902245}},
      {30.0,
       8.0,
       9.093655197041,
       {-0.005913842996119, -0.1011335617114, 0.2871952811554, -0.05647785445541,
        -0.1236700219924}},
  };
  for (const auto& expected : golden) {
    std::vector<double> gradient(5);
    const SlateLoss loss = list_mle(expected.clip_norm, expected.temperature);
    EXPECT_NEAR(loss.evaluate(scores, targets, 1, gradient).loss, expected.loss, 1e-10);
    for (int i = 0; i < 5; ++i) EXPECT_NEAR(gradient[i], expected.gradient[i], 1e-10) << i;
  }
}

RC_GTEST_PROP(ListMle, GradientEqualsFiniteDifferences, (std::uint64_t key)) {
  CounterRng rng(key);
  const std::size_t n = 2 + rng.below(8);
  std::vector<double> scores(n), targets(n);
  for (double& score : scores) score = rng.uniform(-3, 3);
  for (double& target : targets) target = static_cast<double>(rng.below(4));  // with ties
  const double temperature = rng.uniform(0.5, 4);
  for (const double clip_norm : {kNoClip, 1.5})
    RC_ASSERT(gradient_error(list_mle(clip_norm, temperature), scores, targets, key) < 1e-6);
}

TEST(ListMle, IsSmallestWhenSlowerScoresMore) {
  const std::vector<double> targets = {1, 2, 3};
  std::vector<double> gradient(3);
  const SlateLoss loss = list_mle(kNoClip);
  const double right = loss.evaluate(std::vector<double>{-5, 0, 5}, targets, 0, gradient).loss;
  const double wrong = loss.evaluate(std::vector<double>{5, 0, -5}, targets, 0, gradient).loss;
  EXPECT_LT(right, 0.02);
  EXPECT_GT(wrong, 14);
}

TEST(ListMle, DividesScoresByTheTemperature) {
  const std::vector<double> scores = {3, -1, 4.5}, halves = {1.5, -0.5, 2.25}, targets = {2, 1, 3};
  std::vector<double> gradient(3), of_halves(3);
  const double loss = list_mle(kNoClip, 2).evaluate(scores, targets, 0, gradient).loss;
  EXPECT_EQ(loss, list_mle(kNoClip).evaluate(halves, targets, 0, of_halves).loss);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gradient[i], of_halves[i] / 2) << i;
}

TEST(ListMle, DrawsTheOrderOfEqualTargetsFromTheKey) {
  const std::vector<double> scores = {0, 1, 3}, targets = {7, 7, 7};
  std::vector<double> gradient(3);
  std::set<double> losses;
  for (std::uint64_t key = 0; key < 60; ++key) {
    const double loss = list_mle(kNoClip).evaluate(scores, targets, key, gradient).loss;
    EXPECT_EQ(loss, list_mle(kNoClip).evaluate(scores, targets, key, gradient).loss);
    losses.insert(loss);
  }
  EXPECT_EQ(losses.size(), 6u);  // all orders of three
}

RC_GTEST_PROP(ListMle, IsShiftFreeExactlyWhereNothingIsClipped, (std::uint64_t key)) {
  CounterRng rng(key);
  const std::size_t n = 2 + rng.below(8);
  std::vector<double> scores(n), targets(n), gradient(n);
  double square = 0, largest = 0, sum = 0;
  for (double& score : scores) {
    score = rng.uniform(-3, 3);
    square += score * score;
  }
  for (double& target : targets) target = static_cast<double>(rng.below(4));
  const double clip_norm = rng.uniform(0.5, 8);
  const auto value = list_mle(clip_norm).evaluate(scores, targets, key, gradient);
  RC_ASSERT(value.translation_invariant == (std::sqrt(square) <= clip_norm));
  for (const double g : gradient) {
    sum += g;
    largest = std::max(largest, std::abs(g));
  }
  if (value.translation_invariant)
    RC_ASSERT(std::abs(sum) <= 1e-12 * static_cast<double>(n) * largest);
}

RC_GTEST_PROP(RegressionLosses, GradientEqualsFiniteDifferences, (std::uint64_t key)) {
  CounterRng rng(key);
  const std::size_t n = 1 + rng.below(8);
  std::vector<double> scores(n), targets(n);
  for (std::size_t k = 0; k < n; ++k) {
    targets[k] = rng.uniform(0.5, 2);
    scores[k] = 3 * targets[k] + (rng.below(2) == 0 ? -1 : 1) * rng.uniform(0.01, 2);
  }
  RC_ASSERT(gradient_error(mape(3), scores, targets) < 1e-6);
  RC_ASSERT(gradient_error(mse(3), scores, targets) < 1e-6);
}

TEST(RegressionLosses, AreZeroAtTheTargetInItsUnit) {
  const std::vector<double> targets = {2e9, 3e9}, scores = {2, 3};
  std::vector<double> gradient = {5, 5};
  EXPECT_NEAR(mape(1e-9).evaluate(scores, targets, 0, gradient).loss, 0, 1e-15);
  EXPECT_NEAR(mse(1e-9).evaluate(scores, targets, 0, gradient).loss, 0, 1e-15);
  EXPECT_NEAR(gradient[0], 0, 1e-15);
}

// One configuration has a level, though nothing to be ranked against.
TEST(RegressionLosses, LearnFromOneConfiguration) {
  std::vector<double> gradient(1);
  EXPECT_EQ(mape().evaluate(std::vector<double>{3}, std::vector<double>{2}, 0, gradient).loss, 0.5);
  EXPECT_EQ(gradient[0], 0.5);
  EXPECT_EQ(mse().evaluate(std::vector<double>{3}, std::vector<double>{2}, 0, gradient).loss, 1);
  EXPECT_EQ(gradient[0], 2);
}

TEST(Mape, DividesByALeastRunTime) {
  std::vector<double> gradient(1);
  EXPECT_DOUBLE_EQ(
      mape().evaluate(std::vector<double>{1}, std::vector<double>{0}, 0, gradient).loss,
      1 / 1.17e-6);
}

}  // namespace
}  // namespace tpudist
