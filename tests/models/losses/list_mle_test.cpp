#include "models/losses/losses.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "tests/models/losses/finite_differences.hpp"

namespace tpudist {
namespace {

constexpr double kNoClip = std::numeric_limits<double>::infinity();

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

TEST(ListMle, ShiftsChangeNothingWithoutAClip) {
  const std::vector<double> scores = {0.5, -1, 2}, shifted = {64.5, 63, 66}, targets = {3, 1, 2};
  std::vector<double> gradient(3), shifted_gradient(3);
  const SlateLoss loss = list_mle(kNoClip);
  EXPECT_TRUE(loss.is_translation_invariant);
  EXPECT_FALSE(list_mle(500).is_translation_invariant);
  EXPECT_EQ(loss.evaluate(scores, targets, 0, gradient).loss,
            loss.evaluate(shifted, targets, 0, shifted_gradient).loss);
  EXPECT_EQ(gradient, shifted_gradient);
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

TEST(ListMle, OneConfigurationTeachesNothing) {
  std::vector<double> gradient = {5};
  EXPECT_EQ(
      list_mle(500).evaluate(std::vector<double>{3}, std::vector<double>{1}, 0, gradient).loss, 0);
  EXPECT_EQ(gradient[0], 0);
}

TEST(ListMle, RefusesWhatItCannotRank) {
  std::vector<double> gradient(2);
  const double nan = std::nan("");
  EXPECT_THROW(
      list_mle(500).evaluate(std::vector<double>{1, 2}, std::vector<double>{1, nan}, 0, gradient),
      DataError);
  EXPECT_THROW(
      list_mle(500).evaluate(std::vector<double>{1, 2}, std::vector<double>{1}, 0, gradient),
      Error);
}

TEST(ListMle, PassesNotANumberOn) {
  std::vector<double> gradient(2);
  EXPECT_TRUE(std::isnan(
      list_mle(500)
          .evaluate(std::vector<double>{std::nan(""), 1}, std::vector<double>{1, 2}, 0, gradient)
          .loss));
}

}  // namespace
}  // namespace tpudist
