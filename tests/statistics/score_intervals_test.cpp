#include "statistics/intervals/score_intervals.hpp"

#include <gmock/gmock.h>

#include <array>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "statistics/intervals/run_variance.hpp"
#include "tests/statistics/golden_scores.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of(const RunScoreTable& scores) {
  return test::message_of<DataError>([&] { run_interval(scores); });
}

// Golden numbers: tests/golden/statistics_intervals.py.
TEST(FamilyInterval, EqualsTheTwoWayAnalysisByMatrices) {
  const RunScoreTable scores = golden_scores(1);
  const auto found = family_interval({&scores, 1});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->family.variance + found->run_variance, 0.002434751662887375, 1e-14);
  EXPECT_NEAR(found->interval.degrees, 2.352566671603274, 1e-9);
  EXPECT_NEAR(found->interval.low, 0.5374018021277995, 1e-10);
  EXPECT_NEAR(found->interval.high, 0.9065029597769625, 1e-10);
  EXPECT_EQ(found->families, 4);
  EXPECT_EQ(found->graphs, 7);
  EXPECT_EQ(found->runs, 3);

  const RunScoreTable other = golden_scores(11);
  const auto second = family_interval({&other, 1});
  EXPECT_NEAR(second->interval.low, 0.5568611287518993, 1e-10);
  EXPECT_NEAR(second->interval.high, 0.810472204581434, 1e-10);
}

TEST(FamilyInterval, OfOneRunIsOfThisModelOnly) {
  const RunScoreTable scores = first_run_of(golden_scores(1));
  const auto found = family_interval({&scores, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->runs, 1);
  EXPECT_EQ(found->run_variance, 0);
  EXPECT_EQ(found->interval.degrees, found->family.degrees);
  EXPECT_FALSE(run_interval(scores));
}

// 1 is the best tile score and the best Kendall tau, -1 the worst Kendall tau.
TEST(FamilyInterval, EndsWhereScoresDo) {
  RunScoreTable scores = golden_scores(1);
  for (auto& own : scores.scores) own[0] += 0.2, own[1] -= 0.4;
  EXPECT_EQ(family_interval({&scores, 1})->interval.high, 1);
  EXPECT_EQ(run_interval(scores)->high, 1);
  EXPECT_GE(run_interval(scores)->low, -1);
  const double low = run_interval(scores)->low;
  scores.lowest = -std::numeric_limits<double>::infinity();
  EXPECT_LE(run_interval(scores)->low, low);
  EXPECT_EQ(run_interval(scores)->high, 1);
}

TEST(FamilyInterval, IsNothingForOneFamily) {
  RunScoreTable scores = golden_scores(1);
  scores.families.assign(7, "resnet");
  EXPECT_FALSE(family_interval({&scores, 1}));
}

// A collection twice, with runs of its own: families say no more, runs twice as much.
TEST(FamilyInterval, TakesRunsOfCollectionsAsIndependent) {
  const std::array both{golden_scores(1), golden_scores(1)};
  const auto one = family_interval(std::span(both).first(1)), two = family_interval(both);
  EXPECT_NEAR(two->family.variance, one->family.variance, 1e-15);
  EXPECT_NEAR(two->run_variance, one->run_variance / 2, 1e-15);
  EXPECT_NEAR(two->interval.value, one->interval.value, 1e-12);
  EXPECT_EQ(two->families, 4);
}

// Collections of as many runs: Welch's degrees for what runs add, not those of each alone.
TEST(FamilyInterval, OfCollectionsTakesWelchsDegreesForRuns) {
  std::array both{golden_scores(1), golden_scores(11)};
  for (RunScoreTable& own : both) {
    for (auto& row : own.scores) {
      for (std::size_t r = 0; r < row.size(); ++r) row[r] += 0.05 * static_cast<double>(r);
    }
  }
  const auto degrees = [&] { return family_interval(both)->interval.degrees; };
  std::vector<VarianceEstimate> runs;
  for (const RunScoreTable& own : both) {
    const VarianceEstimate term = run_variance(own).missing()[0];
    runs.push_back({term.variance / 4, term.degrees});
  }
  const std::array merged{family_interval(both)->family, satterthwaite(runs)};
  EXPECT_NEAR(degrees(), howe(merged).degrees, 1e-9);
  for (auto& row : both[1].scores) row.push_back(row[0]);
  EXPECT_LT(degrees(), howe(merged).degrees);
}

// Kin count as one where others stand beside them, and the interval says so; on graphs of kin alone
// each counts.
TEST(FamilyInterval, CountsKinAsOneFamily) {
  RunScoreTable scores = golden_scores(1);
  scores.families = {"bert_l2", "bert_l2", "bert_l4", "bert_l4", "electra", "resnet", "resnet"};
  const auto found = family_interval({&scores, 1});
  EXPECT_EQ(found->families, 2);
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("3 of 4 model families are BERTs")));
  const RunScoreTable kin = on_graphs(scores, {"g0", "g1", "g2", "g3", "g4"});
  EXPECT_EQ(family_interval({&kin, 1})->families, 3);
  EXPECT_THAT(family_text(family_interval({&kin, 1})), HasSubstr("are other BERTs\n"));
}

TEST(RunVariance, MissesAllOfTheRunsWhereTheyScoreAllGraphs) {
  const RunVariance found = run_variance(golden_scores(1));
  EXPECT_NEAR(found.share, 1, 1e-12);
  EXPECT_EQ(found.graphs_per_fold, 7);
  EXPECT_EQ(found.run_degrees, 2);
  EXPECT_EQ(found.interaction_degrees, 12);
}

// Twelve folds of one family of one graph each: the runs are in the families' variance already.
TEST(RunVariance, MissesNothingWhereFoldsAreFamilies) {
  RunScoreTable scores;
  for (int g = 0; g < 12; ++g) {
    scores.graphs.push_back(std::to_string(g));
    scores.families.push_back(std::to_string(g));
    scores.folds.push_back(g);
    scores.scores.push_back({0.1 * g, 0.1 * g + (g % 2 == 0 ? 0.05 : -0.05)});
  }
  const RunVariance found = run_variance(scores);
  EXPECT_NEAR(found.share, 0, 1e-12);
  EXPECT_EQ(found.interaction_degrees, 0);
  for (const VarianceEstimate& term : found.missing()) EXPECT_EQ(term.variance, 0);
}

// Close to (sum n_fold^2 - sum n_family^2) / G^2 for many folds, and never below.
TEST(RunVariance, OutOfFoldMissesWhatFamiliesOfAFoldShare) {
  RunScoreTable scores;
  for (int g = 0; g < 60; ++g) {
    scores.graphs.push_back(std::to_string(g));
    scores.families.push_back(std::to_string(g / 2));
    scores.folds.push_back(g / 6);
    scores.scores.push_back({0.5 + 0.001 * g, 0.6 - 0.002 * g});
  }
  const double simple = (10 * 36 - 30 * 4) / 3600.0;
  EXPECT_NEAR(run_variance(scores).share, simple, 0.005);
  EXPECT_GE(run_variance(scores).share, simple);
}

TEST(RunScoreTable, RefuseWhatIsNoCompleteTable) {
  RunScoreTable holes = golden_scores(1);
  holes.scores[4][2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal_of(holes), HasSubstr("run 2 on graph g4 is nan"));
  RunScoreTable ragged = golden_scores(1);
  ragged.scores[6].pop_back();
  EXPECT_THAT(refusal_of(ragged), HasSubstr("graph g6 has scores of 2 runs, graph g0 of 3"));
  EXPECT_THAT(refusal_of(RunScoreTable()), HasSubstr("no graph"));
  RunScoreTable unnamed = golden_scores(1);
  unnamed.families.pop_back();
  EXPECT_THAT(refusal_of(unnamed), HasSubstr("6 families"));
}

}  // namespace
}  // namespace tpudist
