#include "statistics/intervals/variance_components.hpp"

#include <gtest/gtest.h>

#include <array>

#include "core/error.hpp"
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
      EXPECT_NEAR(value, golden[static_cast<std::size_t>(next)], 1e-9) << "number " << next;
      ++next;
    }
  }
}

// Golden numbers: tests/golden/statistics_intervals.py, by projections of all scores. Where all runs
// score all graphs, the standard deviations are also those of restricted maximum likelihood.
TEST(VarianceComponents, CrossedEqualTheProjections) {
  expect_equal(
      variance_components(golden_scores(1)),
      {0.11774440976855856, 0.07940834817716282, 0.22745013142041037, 0.015017450167188565, 0.0,
       0.08306934664523384, 0.030786515291763024, 0.02325798607059255, 0.04665145884535622});
  expect_equal(
      variance_components(golden_scores(11)),
      {0.13160284770402847, 0.08942940256827005, 0.2535358660515726, 0.017378375542843816, 0.0,
       0.08952084147281845, 0.028369864404850096, 0.021432302581160925, 0.04298945655877148});
}

TEST(VarianceComponents, OutOfFoldEqualTheProjections) {
  expect_equal(
      variance_components(golden_scores(1, true)),
      {0.12012528182415777, 0.07851338083497723, 0.25326732471267205, 0.012852366837794673, 0.0,
       0.04773874485257149, 0.0317513779228567, 0.023466781795599263, 0.050582230988692585});
  expect_equal(
      variance_components(golden_scores(11, true)),
      {0.134681187335954, 0.08885843157995055, 0.283106388630161, 0.016110949643417426, 0.0,
       0.050939865718562356, 0.029108322597572272, 0.021513354680000055, 0.04637165356732055});
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
    EXPECT_LE(count, 198);
  }
}

TEST(VarianceComponents, OfEqualScoresAreZero) {
  RunScoreTable scores = golden_scores(1);
  for (auto& own : scores.scores) own.assign(3, 0.5);
  const VarianceComponents found = variance_components(scores);
  EXPECT_EQ(found.graph.high, 0);
  EXPECT_EQ(found.residual.high, 0);
}

TEST(VarianceComponents, RefuseOneRunAndOneGraph) {
  RunScoreTable one = golden_scores(1);
  for (auto& own : one.scores) own.resize(1);
  EXPECT_THROW(variance_components(one), Error);
  RunScoreTable single{{"g"}, {"f"}, {}, {{0.5, 0.6}}};
  EXPECT_THROW(variance_components(single), Error);
}

}  // namespace
}  // namespace tpudist
