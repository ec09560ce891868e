#include "statistics/intervals/interval.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/score_intervals.hpp"
#include "tests/statistics/golden_scores.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;
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

}  // namespace
}  // namespace tpudist
