#include <gtest/gtest.h>

#include <cmath>

#include "statistics/comparison.hpp"
#include "statistics/score_intervals.hpp"
#include "tests/statistics/simulated_scores.hpp"

// Whether intervals hold the truth as often as they say, over 500 repeats each. The long form, with
// all cases and 2,000 repeats, is bench/statistics_calibration.cpp.
namespace tpudist {
namespace {

constexpr int kRepeats = 500;

// In percent.
double coverage(const SimulatedWorld& world, bool bootstrap = false) {
  int held = 0;
  for (std::uint64_t key = 0; key < kRepeats; ++key) {
    const RunScores scores = simulated_scores(world, key);
    const Interval found = bootstrap ? bootstrap_family_interval(scores).interval
                                     : family_interval({&scores, 1})->interval;
    held += found.low <= world.truth() && world.truth() <= found.high;
  }
  return 100.0 * held / kRepeats;
}

SimulatedWorld world_of(std::vector<int> families, bool exponential) {
  SimulatedWorld world;
  world.families = std::move(families);
  world.exponential = exponential;
  return world;
}

void expect_covered(const SimulatedWorld& world) {
  EXPECT_GE(coverage(world), 91);  // 92 to 98 over 2,000 repeats
  EXPECT_LE(coverage(world), 99);
}

TEST(FamilyInterval, HoldsTheGrandMeanOfNormalGraphs) {
  expect_covered(world_of(std::vector<int>(7, 1), false));
  expect_covered(world_of({3, 2, 1, 1}, false));
  expect_covered(world_of(std::vector<int>(20, 1), false));
  expect_covered(world_of({4, 4, 3, 3, 2, 1, 1, 1, 1}, false));
}

TEST(FamilyInterval, HoldsTheGrandMeanOfSkewedGraphs) {
  expect_covered(world_of(std::vector<int>(7, 1), true));
  expect_covered(world_of({3, 2, 1, 1}, true));
  expect_covered(world_of(std::vector<int>(20, 1), true));
  expect_covered(world_of({4, 4, 3, 3, 2, 1, 1, 1, 1}, true));
}

TEST(FamilyInterval, HoldsTheGrandMeanOutOfFold) {
  SimulatedWorld world = world_of(std::vector<int>(10, 2), false);
  world.folds = 5;
  world.run = 0.06;
  expect_covered(world);
}

TEST(BootstrapFamilyInterval, HoldsTheGrandMeanOfSkewedGraphs) {
  const double covered = coverage(world_of(std::vector<int>(7, 1), true), true);
  EXPECT_GE(covered, 92);
  EXPECT_LE(covered, 98.5);
}

// What no interval from few graphs can do, and what is printed beside it.
TEST(FamilyInterval, DoesNotSeeRareFailures) {
  SimulatedWorld world = world_of(std::vector<int>(7, 1), false);
  world.graph = 0.03;
  world.failing = 0.1;
  EXPECT_LT(coverage(world), 85);
}

TEST(RunInterval, HoldsTheMeanOfOtherRuns) {
  SimulatedWorld world = world_of(std::vector<int>(7, 1), false);
  world.graph = 0;
  int held = 0;
  for (std::uint64_t key = 0; key < kRepeats; ++key) {
    const Interval found = *run_interval(simulated_scores(world, key));
    held += found.low <= world.mean && world.mean <= found.high;
  }
  EXPECT_NEAR(100.0 * held / kRepeats, 95, 3);
}

// Repeats of `world` in which `p_of` a comparison calls a difference.
template <typename P>
int called(const SimulatedWorld& world, double differences, const P& p_of) {
  SimulatedWorld extra = world;
  extra.graph = differences;
  int count = 0;
  for (std::uint64_t key = 0; key < kRepeats; ++key) {
    const auto [a, b] = simulated_pair(world, extra, key);
    count += p_of(compare(a, b)) < kSignificance;
  }
  return count;
}

TEST(Compare, OfEqualSystemsRarelyFindsADifference) {
  SimulatedWorld world = world_of({4, 4, 3, 3, 2, 1, 1, 1, 1}, false);
  // Of 500: at most 7 %, and what chance adds.
  EXPECT_LE(called(world, 0.04, [](const Comparison& found) { return found.other_families->p; }),
            40);
  EXPECT_LE(called(world, 0, [](const Comparison& found) { return found.these_graphs.test.p; }),
            35);
  world.run = 0;  // the models are what they are: their difference on a graph has mean 0
  EXPECT_LE(
      called(world, 0.04, [](const Comparison& found) { return found.other_families->signs.p; }),
      35);
}

}  // namespace
}  // namespace tpudist
