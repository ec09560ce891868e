#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "statistics/intervals/comparison.hpp"
#include "statistics/intervals/score_intervals.hpp"
#include "tests/statistics/simulated_scores.hpp"

// Whether intervals hold the truth as often as they say, over 500 repeats each. The long form, with
// all cases and more repeats, is bench/statistics_calibration.cpp.
namespace tpudist {
namespace {

constexpr int kRepeats = 500;

// The number of repeats for whose key `holds` is true.
template <typename Holds>
int repeats_where(const Holds& holds) {
  int count = 0;
  for (std::uint64_t key = 0; key < kRepeats; ++key) count += holds(key);
  return count;
}

// The share of repeats, in percent, in which `interval_of` a key holds the truth.
template <typename IntervalOf>
double coverage(double truth, const IntervalOf& interval_of) {
  return 100.0 / kRepeats * repeats_where([&](std::uint64_t key) {
           const Interval found = interval_of(key);
           return found.low <= truth && truth <= found.high;
         });
}

double coverage(const SimulatedWorld& world) {
  return coverage(world.truth(), [&](std::uint64_t key) {
    const RunScoreTable scores = simulated_scores(world, key);
    return family_interval({&scores, 1})->interval;
  });
}

SimulatedWorld world_of(std::vector<int> families, GraphShape shape = GraphShape::normal) {
  SimulatedWorld world;
  world.families = std::move(families);
  world.shape = shape;
  return world;
}

void expect_covered(const SimulatedWorld& world) {
  EXPECT_GE(coverage(world), 91);  // 92 to 98 over 2,000 repeats
  EXPECT_LE(coverage(world), 99);
}

TEST(FamilyInterval, HoldsTheGrandMeanOfNormalAndSkewedGraphs) {
  for (const GraphShape shape : {GraphShape::normal, GraphShape::exponential}) {
    expect_covered(world_of(std::vector<int>(7, 1), shape));
    expect_covered(world_of({3, 2, 1, 1}, shape));
    expect_covered(world_of(std::vector<int>(20, 1), shape));
    expect_covered(world_of({4, 4, 3, 3, 2, 1, 1, 1, 1}, shape));
  }
}

// Coverage of the difference on other families where one family dominates, or a side has two
// trainings: with Satterthwaite's degrees 88 to 93 %.
double difference_coverage(const SimulatedWorld& world, int runs_b) {
  SimulatedWorld differences = world;
  differences.graph = 0.04;
  return coverage(0, [&](std::uint64_t key) {
    const auto [a, b] = simulated_pair(world, differences, key, runs_b);
    return compare_on_other_families(a, b)->interval.interval;
  });
}

TEST(OtherFamilies, HoldTheDifferenceWhereOneFamilyDominates) {
  SimulatedWorld world = world_of({5, 1, 1});
  world.runs = 10;
  EXPECT_GE(difference_coverage(world, 10), 94);
  world.families = {10, 1, 1, 1, 1, 1};
  EXPECT_GE(difference_coverage(world, 10), 94);
}

TEST(OtherFamilies, HoldTheDifferenceWhereASideHasTwoTrainings) {
  SimulatedWorld world = world_of(std::vector<int>(8, 1));
  world.runs = 2;
  EXPECT_GE(difference_coverage(world, 10), 94);
  world.families.assign(12, 1);
  EXPECT_GE(difference_coverage(world, 5), 94);
}

TEST(FamilyInterval, HoldsTheGrandMeanOutOfFold) {
  SimulatedWorld world = world_of(std::vector<int>(10, 2));
  world.folds = 5;
  world.run = 0.06;
  expect_covered(world);
}

// What no interval from few graphs can do, and what is printed beside it.
TEST(FamilyInterval, DoesNotSeeRareFailures) {
  SimulatedWorld world = world_of(std::vector<int>(7, 1));
  world.graph = 0.03;
  world.failing = 0.1;
  EXPECT_LT(coverage(world), 85);
}

// In percent.
double run_coverage(const SimulatedWorld& world) {
  return coverage(world.truth(),
                  [&](std::uint64_t key) { return *run_interval(simulated_scores(world, key)); });
}

TEST(RunInterval, HoldsTheMeanOfOtherRuns) {
  SimulatedWorld world = world_of(std::vector<int>(7, 1));
  world.graph = 0;
  EXPECT_NEAR(run_coverage(world), 95, 3);
}

// What no interval from few runs can do, and what is printed beside it.
TEST(RunInterval, DoesNotSeeRareCollapses) {
  SimulatedWorld world = world_of(std::vector<int>(7, 1));
  world.graph = world.interaction = 0;
  world.run = 0.01;
  EXPECT_NEAR(run_coverage(world), 95, 3);
  world.collapsing = 0.05;
  EXPECT_LT(run_coverage(world), 80);
  world.collapsing = 0.1;
  EXPECT_LT(run_coverage(world), 60);
}

// Equal groups that Welch's t calls different, of 4,000; the first one's spread is `ratio` times as
// large.
int called_by_welch(int first, int second, double ratio) {
  CounterRng random(
      mix_key({static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second)}));
  int count = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<double> a, b;
    for (int r = 0; r < first; ++r) a.push_back(0.03 * ratio * random.normal());
    for (int r = 0; r < second; ++r) b.push_back(0.03 * random.normal());
    count += t_test_p(difference_interval(a, b)) < kSignificance;
  }
  return count;
}

// At most 7 %, and what chance adds.
TEST(DifferenceInterval, OfUnequalNumbersRarelyFindsADifference) {
  for (const auto& [first, second] :
       {std::pair{2, 3}, {2, 5}, {2, 7}, {2, 10}, {3, 5}, {3, 10}, {4, 10}}) {
    for (const double ratio : {0.3, 1.0, 3.0})
      EXPECT_LE(called_by_welch(first, second, ratio), 320)
          << first << " " << second << " " << ratio;
  }
}

// Repeats of `world` in which `p_of` a comparison calls a difference.
template <typename P>
int called(const SimulatedWorld& world, double differences, const P& p_of) {
  SimulatedWorld extra = world;
  extra.graph = differences;
  return repeats_where([&](std::uint64_t key) {
    const auto [a, b] = simulated_pair(world, extra, key);
    return p_of(compare(a, b)) < kSignificance;
  });
}

TEST(Compare, OfEqualSystemsRarelyFindsADifference) {
  const SimulatedWorld world = world_of({4, 4, 3, 3, 2, 1, 1, 1, 1});
  // Of 500: at most 7 %, and what chance adds.
  EXPECT_LE(called(world, 0.04, [](const Comparison& found) { return found.other_families->p; }),
            40);
  EXPECT_LE(called(world, 0, [](const Comparison& found) { return found.these_graphs->p; }), 35);
}

// Members of a training are alike: by trainings the interval holds, by members it does not.
TEST(RunInterval, HoldsWhereMembersOfATrainingAreAlike) {
  SimulatedWorld world = world_of(std::vector<int>(7, 1));
  world.graph = 0;
  world.members = 3;
  world.within = 0.8;
  EXPECT_NEAR(run_coverage(world), 95, 3);
  world.as_runs = true;
  EXPECT_LT(run_coverage(world), 85);
}

// Out of fold members of a training that hold out different folds are alike, too.
TEST(Compare, HoldsOutOfFoldWhereFoldsOfATrainingAreAlike) {
  SimulatedWorld world = world_of(std::vector<int>(10, 2));
  world.folds = 5;
  world.run = 0.06;
  world.within = 0.8;
  world.runs = 5;
  EXPECT_LE(called(world, 0.04, [](const Comparison& found) { return found.other_families->p; }),
            40);
}

// Three runs of a large spread beside ten of a small one.
TEST(Compare, OfUnequalSpreadsRarelyFindsADifference) {
  int count = 0;
  for (std::uint64_t key = 0; key < kRepeats; ++key) {
    SimulatedWorld wide = world_of(std::vector<int>(7, 1)), narrow = wide;
    wide.graph = narrow.graph = wide.interaction = narrow.interaction = 0;
    wide.run = 0.1;
    narrow.run = 0.01;
    narrow.runs = 10;
    const Comparison found = compare(simulated_scores(wide, mix_key({key, 1})),
                                     simulated_scores(narrow, mix_key({key, 2})));
    count += found.these_graphs->p < kSignificance;
  }
  EXPECT_LE(count, 38);
}

// Equal recipes seldom look like a sure win.
TEST(ShakeUp, OfEqualSystemsIsSeldomSure) {
  SimulatedWorld world = world_of({3, 2, 1, 1});
  world.runs = 2;
  int sure = 0;
  for (std::uint64_t key = 0; key < kRepeats; ++key) {
    const auto [a, b] = simulated_pair(world, world, key);
    const ShakeUp found = compare(a, b).other_families->shake_up;
    sure += found.chance > 0.95;
    EXPECT_LE(found.regret, kLargestDifference);
  }
  EXPECT_LE(sure, 25);
}

// Of eight equal systems, and of eight that differ.
std::vector<std::vector<double>> simulated_systems(std::uint64_t key, int runs, double spread_ratio,
                                                   double between) {
  CounterRng random(key);
  std::vector<std::vector<double>> systems(8);
  for (std::size_t s = 0; s < systems.size(); ++s) {
    const double centre = between * random.normal();
    for (int r = 0; r < runs; ++r)
      systems[s].push_back(centre + 0.03 * (s == 0 ? spread_ratio : 1) * random.normal());
  }
  return systems;
}

TEST(AllPairs, OfEqualSystemsRarelyFindAny) {
  for (const double ratio : {1.0, 10.0}) {
    int found = 0;
    for (std::uint64_t key = 0; key < 150; ++key) {
      const AllPairs pairs = all_pairs(simulated_systems(key, 3, ratio, 0));
      found += std::ranges::any_of(
          pairs.pairs, [](const AllPairs::Pair& pair) { return pair.p < kSignificance; });
    }
    EXPECT_LE(found, 15) << ratio;
  }
}

// all_pairs itself at the shift that detectable_shift tells, in percent.
double found_at_shift(int systems, int runs) {
  const double shift = detectable_shift(systems, runs);
  constexpr int kSweeps = 150;
  int found = 0;
  for (std::uint64_t key = 0; key < kSweeps; ++key) {
    CounterRng random(mix_key({key, 9}));
    std::vector<std::vector<double>> list(static_cast<std::size_t>(systems));
    for (auto& own : list) {
      for (int r = 0; r < runs; ++r)
        own.push_back(0.03 * (random.normal() + (&own == list.data() ? shift : 0)));
    }
    for (const AllPairs::Pair& pair : all_pairs(list).pairs)
      found += pair.a == 0 && pair.p < kSignificance;
  }
  return 100.0 * found / kSweeps / (systems - 1);
}

TEST(DetectableShift, IsFoundInEightOfTenSweeps) {
  EXPECT_NEAR(found_at_shift(2, 3), 80, 9);
  EXPECT_NEAR(found_at_shift(3, 3), 80, 9);
  EXPECT_NEAR(found_at_shift(8, 2), 80, 9);
  EXPECT_GT(detectable_shift(8, 3), 2 * detectable_shift(2, 3));
  EXPECT_TRUE(std::isinf(detectable_shift(27, 2)));
  EXPECT_THROW(detectable_shift(2, 1), Error);
}

// What is drawn towards the mean is nearer to the truth.
TEST(AllPairs, ShrinkTowardsTheTruth) {
  double raw = 0, shrunk = 0;
  for (std::uint64_t key = 0; key < 100; ++key) {
    const auto systems = simulated_systems(key, 3, 1, 0.02);
    CounterRng random(key);
    const AllPairs pairs = all_pairs(systems);
    for (std::size_t s = 0; s < systems.size(); ++s) {
      const double centre = 0.02 * random.normal();
      for (int r = 0; r < 3; ++r) random.normal();
      raw += std::pow(mean(systems[s]) - centre, 2);
      shrunk += std::pow(pairs.shrunk[s] - centre, 2);
    }
  }
  EXPECT_LT(shrunk, 0.85 * raw);
}

}  // namespace
}  // namespace tpudist
