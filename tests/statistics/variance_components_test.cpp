#include "statistics/intervals/variance_components.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/error.hpp"
#include "statistics/intervals/simplex_search.hpp"
#include "tests/statistics/golden_scores.hpp"
#include "tests/statistics/simulated_scores.hpp"

namespace tpudist {
namespace {

// SD, low, high of graph, run and residual.
using Golden = std::array<double, 9>;

void expect_equal(const VarianceComponents& found, const Golden& golden) {
  int next = 0;
  for (const VarianceComponents::Deviation& own : {found.graph, found.run, found.residual}) {
    for (const double value : {own.value, own.low, own.high}) {
      EXPECT_NEAR(value, golden[static_cast<std::size_t>(next)], 2e-6) << "number " << next;
      ++next;
    }
  }
}

// Golden numbers: tests/golden/statistics_intervals.py, from the dense covariance, whose standard
// deviations statsmodels' MixedLM confirms.
TEST(VarianceComponents, CrossedEqualsTheDenseLikelihood) {
  expect_equal(
      variance_components(golden_scores(1)),
      {0.11774440887228414, 0.07695358639530897, 0.2084303540084123, 0.015017450669867607, 0.0,
       0.0572652935122847, 0.030786515710470388, 0.02276109268904319, 0.04492535855921945});
  expect_equal(
      variance_components(golden_scores(11)),
      {0.13160284830520147, 0.08644201701507287, 0.23239530817427065, 0.017378375530875928, 0.0,
       0.06188636293557693, 0.02836986439646897, 0.02097441386837117, 0.04139885044220109});
}

TEST(VarianceComponents, OutOfFoldEqualsTheDenseLikelihood) {
  expect_equal(
      variance_components(golden_scores(1, true)),
      {0.11755640326280457, 0.07663764954841912, 0.20835294848134564, 0.011973844948270163, 0.0,
       0.04067454979198941, 0.03214998876131321, 0.023023661381290642, 0.04778043232825705});
  expect_equal(
      variance_components(golden_scores(11, true)),
      {0.13143349793716985, 0.08614494724114033, 0.23235125217807615, 0.01593622581731649, 0.0,
       0.044201935809485185, 0.029408780215131096, 0.02108314487370673, 0.04488657264054408});
}

TEST(VarianceComponents, AreZeroWhereRunsVaryLessThanCells) {
  RunScoreTable scores = golden_scores(1);
  for (auto& own : scores.scores) own[2] = own[0] + own[1] - own[2];
  for (std::size_t r = 0; r < 3; ++r) {
    double mean = 0;
    for (const auto& own : scores.scores) mean += own[r] / 7;
    for (auto& own : scores.scores) own[r] -= mean;
  }
  const VarianceComponents found = variance_components(scores);
  EXPECT_EQ(found.run.value, 0);
  EXPECT_EQ(found.run.low, 0);
  EXPECT_GT(found.run.high, 0);
}

TEST(VarianceComponents, IntervalsHoldWhatScoresWereMadeWith) {
  SimulatedWorld world;
  world.families.assign(20, 1);
  world.runs = 5;
  std::array<int, 3> held{};
  for (std::uint64_t key = 0; key < 200; ++key) {
    const VarianceComponents found = variance_components(simulated_scores(world, key));
    const std::array components{found.graph, found.run, found.residual};
    const std::array truth{world.graph, world.run, world.interaction};
    for (std::size_t i = 0; i < 3; ++i)
      held[i] += components[i].low <= truth[i] && truth[i] <= components[i].high;
  }
  for (const int count : held) {  // of 200, at 90 %
    EXPECT_GE(count, 164);
    EXPECT_LE(count, 196);
  }
}

TEST(VarianceComponents, OfEqualScoresAreZero) {
  RunScoreTable scores = golden_scores(1);
  for (auto& own : scores.scores) own.assign(3, 0.5);
  const VarianceComponents found = variance_components(scores);
  EXPECT_EQ(found.mean, 0.5);
  EXPECT_EQ(found.graph.high, 0);
}

TEST(VarianceComponents, RefuseOneRunAndOneGraph) {
  RunScoreTable one = golden_scores(1);
  for (auto& own : one.scores) own.resize(1);
  EXPECT_THROW(variance_components(one), Error);
  RunScoreTable single{{"g"}, {"f"}, {}, {{0.5, 0.6}}};
  EXPECT_THROW(variance_components(single), Error);
}

TEST(SimplexSearch, FindsTheValleyOfRosenbrock) {
  const auto rosenbrock = [](std::span<const double> x) {
    return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  const std::vector<double> found = simplex_search(rosenbrock, {-1.2, 1}, std::array{0.5, 0.5});
  EXPECT_NEAR(found[0], 1, 1e-6);
  EXPECT_NEAR(found[1], 1, 1e-6);
  EXPECT_NEAR(rosenbrock(found), 0, 1e-12);
}

TEST(SimplexSearch, WalksAlongOneVariable) {
  const auto bowl = [](std::span<const double> x) { return std::abs(x[0] - 3); };
  EXPECT_NEAR(simplex_search(bowl, {0}, std::array{0.1})[0], 3, 1e-8);
}

TEST(SimplexSearch, EndsWhereNothingChanges) {
  const auto flat = [](std::span<const double>) { return 1.0; };
  EXPECT_EQ(simplex_search(flat, {0, 0}, std::array{1.0, 1.0}).size(), 2u);
}

}  // namespace
}  // namespace tpudist
