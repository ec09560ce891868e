#include "models/losses/losses.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "tests/models/losses/finite_differences.hpp"

namespace tpudist {
namespace {

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
  RC_ASSERT(gradient_error(log_huber(0.5, 3), scores, targets) < 1e-6);
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

TEST(RegressionLosses, DependOnTheLevelOfTheScores) {
  std::vector<double> gradient(2);
  EXPECT_FALSE(mape().is_translation_invariant);
  EXPECT_FALSE(mse().is_translation_invariant);
  EXPECT_FALSE(mape()
                   .evaluate(std::vector<double>{1, 2}, std::vector<double>{1, 2}, 0, gradient)
                   .translation_invariant);
}

TEST(RegressionLosses, RefuseAndPassOnWhatIsNotANumber) {
  const double nan = std::nan("");
  std::vector<double> gradient(2);
  const std::vector<double> good = {1, 2}, bad = {1, nan};
  EXPECT_THROW(mape().evaluate(good, bad, 0, gradient), DataError);
  EXPECT_THROW(mse().evaluate(good, bad, 0, gradient), DataError);
  EXPECT_TRUE(std::isnan(mape().evaluate(bad, good, 0, gradient).loss));
  EXPECT_TRUE(std::isnan(mse().evaluate(bad, good, 0, gradient).loss));
  EXPECT_TRUE(std::isnan(log_huber().evaluate(bad, good, 0, gradient).loss));
  EXPECT_THROW(log_huber().evaluate(good, bad, 0, gradient), DataError);
}

}  // namespace
}  // namespace tpudist
