#include "statistics/intervals/interval.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/run_variance.hpp"
#include "statistics/intervals/score_intervals.hpp"
#include "tests/statistics/golden_scores.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Golden numbers: tests/golden/statistics_intervals.py.
TEST(MeanInterval, EqualsSciPy) {
  const Interval interval = mean_interval(run_means(golden_scores(1)));
  EXPECT_NEAR(interval.value, 0.721952380952381, 1e-12);
  EXPECT_NEAR(interval.low, 0.6747586564683332, 1e-12);
  EXPECT_NEAR(interval.high, 0.7691461054364288, 1e-12);
  EXPECT_EQ(interval.degrees, 2);
}

TEST(DifferenceInterval, EqualsSciPysWelch) {
  const Interval interval =
      difference_interval(run_means(golden_scores(1)), run_means(golden_scores(11)));
  EXPECT_NEAR(interval.value, 0.03828571428571437, 1e-12);
  EXPECT_NEAR(interval.degrees, 3.979333116127019, 1e-9);
  EXPECT_NEAR(interval.low, -0.006514867097001616, 1e-12);
  EXPECT_NEAR(interval.high, 0.08308629566843012, 1e-12);
}

TEST(JackknifeInterval, EqualsNumPy) {
  const Interval interval = jackknife_interval(0.7, graph_means(golden_scores(1)));
  EXPECT_NEAR(interval.low, 0.0392246876597544, 1e-12);
  EXPECT_NEAR(interval.high, 1.3607753123402455, 1e-12);
  EXPECT_EQ(interval.degrees, 6);
}

// Of a mean, without[i] = (n mean - x_i) / (n - 1): the jackknife is the interval of the mean.
TEST(JackknifeInterval, OfAMeanIsTheIntervalOfTheMean) {
  const Values values{0.70, 0.74, 0.71, 0.78};
  Values without;
  for (const double value : values) without.push_back((2.93 - value) / 3);
  const Interval jackknife = jackknife_interval(2.93 / 4, without), mean = mean_interval(values);
  EXPECT_NEAR(jackknife.low, mean.low, 1e-12);
  EXPECT_NEAR(jackknife.high, mean.high, 1e-12);
}

TEST(Satterthwaite, KeepsTheDegreesOfASingleTerm) {
  const std::array terms{VarianceEstimate{0.3, 2.5}, VarianceEstimate{0, 7}};
  const VarianceEstimate sum = satterthwaite(terms);
  EXPECT_DOUBLE_EQ(sum.variance, 0.3);
  EXPECT_DOUBLE_EQ(sum.degrees, 2.5);
}

TEST(Satterthwaite, AddsDegreesOfEqualVariances) {
  const std::array terms{VarianceEstimate{1, 4}, VarianceEstimate{1, 4}};
  EXPECT_DOUBLE_EQ(satterthwaite(terms).degrees, 8);
}

// half width^2 = sum t(degrees)^2 v; Satterthwaite's degrees would be 9.
TEST(Howe, AddsTheSquaresOfHalfWidths) {
  const std::array terms{VarianceEstimate{0.1, 1}, VarianceEstimate{0.9, 9}};
  const VarianceEstimate sum = howe(terms);
  EXPECT_DOUBLE_EQ(sum.variance, 1);
  const double half =
      std::hypot(t_quantile(0.975, 1) * std::sqrt(0.1), t_quantile(0.975, 9) * std::sqrt(0.9));
  EXPECT_NEAR(t_interval(0, sum).high, half, 1e-6);
  EXPECT_NEAR(t_interval(0, howe(terms, 0.8), 0.8).high,
              std::hypot(t_quantile(0.9, 1) * std::sqrt(0.1), t_quantile(0.9, 9) * std::sqrt(0.9)),
              1e-6);
}

// The interval at level 1 - p ends at 0.
TEST(HoweP, IsThatOfTheIntervals) {
  const std::array terms{VarianceEstimate{0.1, 1}, VarianceEstimate{0.9, 9}};
  for (const double level : {0.8, 0.95, 0.999}) {
    const double half = t_interval(0, howe(terms, level), level).high;
    EXPECT_NEAR(howe_p(-half, terms), 1 - level, 1e-7);
  }
  EXPECT_NEAR(howe_p(3, {terms.data(), 1}), two_sided_p(3 / std::sqrt(0.1), 1), 1e-12);
  EXPECT_EQ(howe_p(0, terms), 1);
  EXPECT_TRUE(std::isnan(howe_p(1, std::array{VarianceEstimate{0, 3}})));
}

TEST(Howe, OfOneTermIsTheTerm) {
  const std::array terms{VarianceEstimate{0, 1}, VarianceEstimate{0.3, 2.5}};
  EXPECT_DOUBLE_EQ(howe(terms).degrees, 2.5);
  EXPECT_EQ(howe(std::array{VarianceEstimate{0, 3}}).variance, 0);
  EXPECT_THROW(howe({}), Error);
}

TEST(TInterval, EndsWhereScoresAndDifferencesDo) {
  const Reach tau{-1, 1};
  const Interval found = t_interval(0.97, {4, 2}, kIntervalLevel, tau);
  EXPECT_EQ(found.low, -1);
  EXPECT_EQ(found.high, 1);
  EXPECT_EQ(found.value, 0.97);
  EXPECT_TRUE(std::isnan(t_interval(0.9, {0, 2}, kIntervalLevel, tau).low));
  const Interval difference = difference_interval(Values{0.9, -0.9}, Values{0.8, -0.7},
                                                  kIntervalLevel, tau.of_differences());
  EXPECT_EQ(difference.low, -2);
  EXPECT_EQ(difference.high, 2);
}

TEST(Satterthwaite, OfNoVarianceHasNone) {
  const std::array terms{VarianceEstimate{0, 3}};
  EXPECT_EQ(satterthwaite(terms).variance, 0);
  EXPECT_EQ(satterthwaite(terms).degrees, 3);
  EXPECT_THROW(satterthwaite(std::array{VarianceEstimate{-1, 3}}), Error);
  EXPECT_THROW(satterthwaite({}), Error);
}

// Equal values say nothing of their spread: no interval of width 0, and no p of 0.
TEST(Intervals, OfEqualValuesAreNotKnown) {
  // The sums differ by rounding only.
  const Values alike{(0.1 + 0.2 + 0.3) / 3, (0.3 + 0.2 + 0.1) / 3, (0.1 + 0.2 + 0.3) / 3},
      better{0.3, 0.3, 0.3}, spread{0.3, 0.31, 0.33};
  for (const Interval& interval :
       {mean_interval(alike), difference_interval(better, alike), jackknife_interval(0.7, alike)}) {
    EXPECT_FALSE(interval.is_known());
    EXPECT_TRUE(std::isnan(interval.low) && std::isnan(interval.high));
    EXPECT_TRUE(std::isnan(t_test_p(interval)));
  }
  EXPECT_EQ(interval_text(mean_interval(better)),
            "0.3000 (no interval: all scores are alike, so their spread is not known)");
  // A side without a spread beside one with: the spread and the degrees are the latter's.
  const Interval one_side = difference_interval(spread, alike);
  EXPECT_TRUE(one_side.is_known());
  EXPECT_NEAR(one_side.error, mean_interval(spread).error, 1e-12);
  EXPECT_NEAR(one_side.degrees, 2, 1e-9);
}

// Two values tell too little of a spread, so that many on the other side give no more degrees.
TEST(DifferenceInterval, OfTwoAndMoreHasOneDegree) {
  EXPECT_EQ(difference_interval(Values{0.7, 0.71}, Values{0.5, 0.6, 0.7, 0.8}).degrees, 1);
  EXPECT_GT(difference_interval(Values{0.7, 0.8}, Values{0.6, 0.71}).degrees, 1.5);
}

TEST(MeanInterval, RefusesOneValue) {
  EXPECT_THROW(mean_interval(Values{0.7}), Error);
  EXPECT_THROW(difference_interval(Values{0.7, 0.8}, Values{0.7}), Error);
  EXPECT_THROW(jackknife_interval(0.7, Values{}), Error);
}

TEST(IntervalText, NamesTheQuestionAndWhatItRestsOn) {
  const RunScoreTable scores = golden_scores(1);
  EXPECT_EQ(run_line(*run_interval(scores), "3 runs"),
            "these graphs, if trained again    0.7220 (0.6748 to 0.7691, t(2)); 3 runs");
  EXPECT_EQ(family_line(*family_interval({&scores, 1})),
            "other families, if trained again  0.7220 (0.5374 to 0.9065, t(2.35)); 7 graphs of 4 "
            "families, 3 runs");
}

TEST(IntervalText, SaysWhereOneRunTellsOfItselfOnly) {
  const RunScoreTable scores = first_run_of(golden_scores(1));
  EXPECT_THAT(family_line(*family_interval({&scores, 1})),
              HasSubstr("other families, this model only"));
  EXPECT_THAT(no_run_line("one run"), HasSubstr("not enough: one run"));
}

TEST(IntervalText, NamesMembersOfOneTrainingForWhatTheyAre) {
  EXPECT_EQ(member_line({.value = 0.7, .error = 0.01, .degrees = 4, .low = 0.67, .high = 0.73},
                        "jackknife of 5 members"),
            "other members of this training    0.7000 (0.6700 to 0.7300, t(4)); jackknife of 5 "
            "members");
  EXPECT_THAT(one_training_line(),
              HasSubstr("then train them with other seeds (seed.init, seed.order)"));
}

TEST(IntervalText, SaysWhatFewFamiliesCannotSee) {
  EXPECT_EQ(rare_line(3, "trainings", "collapse"),
            "3 trainings without a collapse leave a collapse rate of up to 63 % possible (95 %)");
  const RunScoreTable scores = golden_scores(1);
  EXPECT_THAT(
      family_text(family_interval({&scores, 1})),
      HasSubstr("\n  4 families without a failure leave a failure rate of up to 53 % possible "
                "(95 %)\n  if some families fail or score far lower, the interval above"));
}

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
