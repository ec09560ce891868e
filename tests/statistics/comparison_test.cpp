#include "statistics/intervals/comparison.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "tests/statistics/golden_scores.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;

RunScoreTable shifted(RunScoreTable scores, double shift) {
  for (auto& own : scores.scores) {
    for (double& score : own) score += shift;
  }
  return scores;
}

std::string refusal_of(const RunScoreTable& a, const RunScoreTable& b) {
  return test::message_of<DataError>([&] { compare(a, b); });
}

// Golden numbers: tests/golden/statistics_comparison.py.
TEST(Compare, EqualsSciPyOnTheseGraphs) {
  const Comparison found = compare(golden_scores(1), golden_scores(11));
  EXPECT_NEAR(found.difference, 0.03828571428571437, 1e-12);
  ASSERT_TRUE(found.these_graphs);
  EXPECT_NEAR(found.these_graphs->interval.low, -0.006514867097001616, 1e-12);
  EXPECT_NEAR(found.these_graphs->p, 0.07652661101395664, 1e-10);
}

TEST(Compare, EqualsTheTwoWayAnalysisOnOtherFamilies) {
  const Comparison found = compare(golden_scores(1), golden_scores(11));
  ASSERT_TRUE(found.other_families);
  const auto& other = *found.other_families;
  EXPECT_NEAR(other.interval.interval.degrees, 2.3987562033195102, 1e-8);
  EXPECT_NEAR(other.interval.interval.low, -0.19405057032144432, 1e-10);
  EXPECT_NEAR(other.interval.interval.high, 0.2706219988928731, 1e-10);
  EXPECT_NEAR(other.p, 0.5960698003129332, 1e-10);
  EXPECT_NEAR(other.next.low, -0.3274504490268594, 1e-8);
  EXPECT_NEAR(other.next.high, 0.3576448934713038, 1e-8);
  EXPECT_NEAR(other.shake_up.chance, 0.551254664747894, 1e-8);
  EXPECT_NEAR(other.shake_up.regret, 0.05204295247705537, 1e-8);
}

// The next family is one family more, not more graphs of those that have many: +0.10 on ten graphs of
// one family and -0.10 on three others lets B lead.
TEST(Compare, OfTheNextFamilyCountsEachFamilyOnce) {
  RunScoreTable a, b;
  for (int g = 0; g < 13; ++g) {
    for (RunScoreTable* side : {&a, &b}) {
      side->graphs.push_back(std::to_string(g));
      side->families.push_back(g < 10 ? "large" : std::to_string(g));
      const double score = 0.5 + (side == &b ? 0 : g < 10 ? 0.1 : -0.1);
      side->scores.push_back({score, score + 0.01, score + 0.02});
    }
  }
  const Comparison found = compare(a, b);
  EXPECT_NEAR(found.difference, 0.7 / 13, 1e-12);
  EXPECT_NEAR(found.other_families->next.value, -0.05, 1e-12);
  EXPECT_NEAR(found.other_families->next.error, std::sqrt(0.01 * 1.25 + 0.01 * 0.01 * 2 / 3), 1e-9);
  EXPECT_GT(found.other_families->shake_up.chance, 0.5);
}

// Kendall tau lies between -1 and 1, so that differences lie between -2 and 2.
TEST(Compare, EndsWhereDifferencesDo) {
  RunScoreTable a = golden_scores(1), b = golden_scores(11);
  for (auto* side : {&a, &b}) {
    for (auto& own : side->scores) {
      own = {0.9, -0.9};
      own[0] -= side == &a ? 0 : 0.1;
    }
  }
  for (std::size_t g = 3; g < 7; ++g) a.scores[g] = {-0.9, 0.8};
  a.scores[0] = {0.9, 0.9};
  const Comparison found = compare(a, b);
  for (const Interval& interval :
       {found.these_graphs->interval, found.other_families->interval.interval,
        found.other_families->next}) {
    EXPECT_EQ(interval.low, -2);
    EXPECT_EQ(interval.high, 2);
  }
  const std::vector<std::vector<double>> means{{0.9, -0.9}, {0.8, -0.7}, {0.7, -0.8}};
  for (const AllPairs::Pair& pair : all_pairs(means, a.reach().of_differences()).pairs) {
    EXPECT_EQ(pair.interval.low, -2);
    EXPECT_EQ(pair.interval.high, 2);
  }
  a.lowest = -std::numeric_limits<double>::infinity();
  EXPECT_LT(compare(a, b).other_families->interval.interval.low, -2);
}

TEST(Compare, CountsKinAsOneFamily) {
  RunScoreTable a = golden_scores(1), b = golden_scores(11);
  a.families = b.families = {"bert_l2", "bert_l2", "bert_l4", "electra", "resnet", "unet", "unet"};
  const Comparison found = compare(a, b);
  EXPECT_EQ(found.families, 3);
  EXPECT_EQ(found.other_families->interval.notes.size(), 1u);
}

// Each of three planned looks is judged at 0.05 / 3.
TEST(Compare, AtAnotherLevelWidensAllIntervals) {
  const double level = 1 - 0.05 / 3;
  const Comparison found = compare(golden_scores(1), golden_scores(11), level),
                   once = compare(golden_scores(1), golden_scores(11));
  EXPECT_EQ(found.level, level);
  EXPECT_LT(found.these_graphs->interval.low, once.these_graphs->interval.low);
  EXPECT_NEAR(found.other_families->interval.interval.low, -0.34416265170321064, 1e-8);
  EXPECT_NEAR(found.other_families->interval.interval.high, 0.4207340802746394, 1e-8);
  // What is not an interval stays.
  EXPECT_EQ(found.other_families->p, once.other_families->p);
  EXPECT_EQ(found.other_families->shake_up.chance, once.other_families->shake_up.chance);
  EXPECT_EQ(found.other_families->shake_up.regret, once.other_families->shake_up.regret);
  const auto families = [&](double own) {
    return plan_difference(golden_scores(1), golden_scores(11), 0.2, own).families->number.value();
  };
  EXPECT_GT(families(level), families(kIntervalLevel));
}

TEST(JudgeMargin, SaysWhatTheIntervalLeavesOpen) {
  const auto judged = [](double low, double high) {
    return std::string(judge_margin(
        {.value = (low + high) / 2, .error = 1, .degrees = 1, .low = low, .high = high}, 0.02));
  };
  EXPECT_EQ(judged(-0.019, 0.019), "equivalent");
  EXPECT_EQ(judged(0.02, 0.05), "A better");
  EXPECT_EQ(judged(-0.05, -0.02), "B better");
  EXPECT_EQ(judged(-0.01, 0.05), "A not worse");
  EXPECT_EQ(judged(-0.05, 0.01), "B not worse");
  EXPECT_EQ(judged(-0.02, 0.02), "undecided");
  EXPECT_EQ(judge_margin(t_interval(0, {0, 2}), 0.02), std::string("undecided"));
}

TEST(Compare, OfOneRunEachSaysWhatIsMissing) {
  const Comparison found = compare(first_run_of(golden_scores(1)), first_run_of(golden_scores(11)));
  EXPECT_FALSE(found.these_graphs);
  ASSERT_TRUE(found.other_families);
  EXPECT_EQ(found.other_families->interval.runs, 1);
  EXPECT_EQ(found.other_families->interval.run_variance, 0);
  // Equal recipes would lead on more than 95 of 100 families in 10 to 15 % of cases.
  EXPECT_TRUE(found.other_families->interval.interval.is_known());
  EXPECT_TRUE(std::isnan(found.other_families->shake_up.chance));
  EXPECT_TRUE(std::isnan(found.other_families->p));
}

TEST(Compare, OfOneFamilySaysNothingOfOthers) {
  RunScoreTable a = golden_scores(1), b = golden_scores(11);
  a.families.assign(7, "bert");
  b.families.assign(7, "bert");
  EXPECT_FALSE(compare(a, b).other_families);
}

TEST(Compare, IsAntisymmetric) {
  const Comparison ab = compare(golden_scores(1), golden_scores(11)),
                   ba = compare(golden_scores(11), golden_scores(1));
  EXPECT_DOUBLE_EQ(ab.difference, -ba.difference);
  EXPECT_DOUBLE_EQ(ab.these_graphs->p, ba.these_graphs->p);
  EXPECT_NEAR(ab.other_families->interval.interval.low, -ba.other_families->interval.interval.high,
              1e-12);
  EXPECT_NEAR(ab.other_families->shake_up.regret, ba.other_families->shake_up.regret, 1e-12);
}

TEST(Compare, RefusesOtherGraphsAndFolds) {
  RunScoreTable renamed = golden_scores(11);
  renamed.graphs[3] = "other";
  EXPECT_THAT(refusal_of(golden_scores(1), renamed), HasSubstr("graph 3 is g3 (b) of one side"));
  EXPECT_THAT(refusal_of(golden_scores(1), golden_scores(11, true)), HasSubstr("fold"));
  RunScoreTable fewer = golden_scores(11);
  for (auto* list : {&fewer.graphs, &fewer.families}) list->pop_back();
  fewer.scores.pop_back();
  EXPECT_THAT(refusal_of(golden_scores(1), fewer), HasSubstr("7 graphs, the other 6"));
}

// A shift of all graphs alike is shown by runs; what graphs differ by only by more families.
TEST(PlanDifference, TellsRunsAndFamilies) {
  const DifferencePlan shift =
      plan_difference(golden_scores(1), shifted(golden_scores(1), -0.01), 0.05);
  ASSERT_TRUE(shift.runs && shift.families && shift.families_with_more_runs);
  EXPECT_GE(*shift.runs->number, 2);
  EXPECT_LE(*shift.families_with_more_runs->number, 4);
  const DifferencePlan other = plan_difference(golden_scores(1), golden_scores(11), 0.05);
  EXPECT_GT(other.families_with_more_runs->number, 7);
  EXPECT_LE(other.families_with_more_runs->low, other.families_with_more_runs->number);
  const DifferencePlan single =
      plan_difference(first_run_of(golden_scores(1)), first_run_of(golden_scores(11)), 0.05);
  EXPECT_FALSE(single.runs || single.families_with_more_runs);
  EXPECT_TRUE(single.families);
  EXPECT_THROW(plan_difference(golden_scores(1), golden_scores(11), 0), Error);
}

const std::vector<std::vector<double>> kSystems{
    {0.71, 0.74, 0.69, 0.73}, {0.66, 0.70, 0.675, 0.655}, {0.72, 0.75, 0.76, 0.71}};

TEST(AllPairs, EqualSciPysTukey) {
  const AllPairs found = all_pairs(kSystems);
  EXPECT_TRUE(found.one_spread);
  ASSERT_EQ(found.pairs.size(), 3u);
  EXPECT_NEAR(found.pairs[0].p, 0.04370857040343068, 1e-6);
  EXPECT_NEAR(found.pairs[1].p, 0.5267991738345665, 1e-6);
  EXPECT_NEAR(found.pairs[2].p, 0.007890678889883929, 1e-6);
  EXPECT_NEAR(found.pairs[1].interval.low, -0.06115222375504066, 1e-5);
  EXPECT_NEAR(found.pairs[1].interval.high, 0.02615222375504052, 1e-5);
  ASSERT_EQ(found.shrunk.size(), 3u);
  EXPECT_NEAR(found.shrunk[0], 0.7164222890224894, 1e-12);
  EXPECT_NEAR(found.shrunk[1], 0.6767128701848142, 1e-12);
}

TEST(AllPairs, OfUnequalSpreadsEqualHolms) {
  const std::vector<std::vector<double>> uneven{
      {0.71, 0.94, 0.39, 0.53}, {0.66, 0.6601, 0.6605, 0.6602}, kSystems[2]};
  const AllPairs found = all_pairs(uneven);
  EXPECT_FALSE(found.one_spread);
  EXPECT_NEAR(found.pairs[0].p, 0.9881332643345544, 1e-9);
  EXPECT_NEAR(found.pairs[2].p, 0.024400084092016786, 1e-9);
}

TEST(AllPairs, OfTwoAreNotShrunkAndOfOneRunAreRefused) {
  EXPECT_TRUE(all_pairs(std::span(kSystems).first(2)).shrunk.empty());
  EXPECT_THROW(all_pairs(std::span(kSystems).first(1)), Error);
  const std::vector<std::vector<double>> single{{0.7}, {0.8, 0.9}};
  EXPECT_THROW(all_pairs(single), Error);
}

// Runs that score alike have an unknown spread, not none.
TEST(AllPairs, OfEqualRunsHaveNoP) {
  const std::vector<std::vector<double>> alike{{0.7, 0.7, 0.7}, {0.6, 0.6, 0.6}, {0.5, 0.5, 0.5}};
  const AllPairs found = all_pairs(alike);
  EXPECT_TRUE(found.shrunk.empty());
  for (const AllPairs::Pair& pair : found.pairs) {
    EXPECT_FALSE(pair.interval.is_known());
    EXPECT_TRUE(std::isnan(pair.p));
  }
  const std::vector<std::vector<double>> mixed{{0.7, 0.7, 0.7}, {0.6, 0.6, 0.6}, {0.5, 0.52, 0.51}};
  const AllPairs some = all_pairs(mixed);
  EXPECT_TRUE(std::isnan(some.pairs[0].p));
  EXPECT_GT(some.pairs[1].p, 0);  // 0.19 with a standard error of 0.0058 and two degrees
  EXPECT_LT(some.pairs[1].p, 0.01);
  EXPECT_LT(some.shrunk[0], 0.7);
}

TEST(Compare, OfEqualRunsHasNoIntervalAndNoPlan) {
  RunScoreTable a = first_run_of(golden_scores(1));
  for (auto& own : a.scores) own.assign(3, own.front());
  const RunScoreTable b = shifted(a, -0.01);
  const Comparison found = compare(a, b);
  ASSERT_TRUE(found.these_graphs && found.other_families);
  EXPECT_FALSE(found.these_graphs->interval.is_known());
  EXPECT_TRUE(std::isnan(found.these_graphs->p));
  EXPECT_FALSE(found.other_families->interval.interval.is_known());
  EXPECT_TRUE(std::isnan(found.other_families->shake_up.chance));
  const DifferencePlan plan = plan_difference(a, b, 0.05);
  EXPECT_FALSE(plan.runs || plan.families);
  EXPECT_TRUE(plan.alike_runs && plan.alike_families);
}

// `sweep collect` and `compare` say the same of two variants.
TEST(AllPairs, OfTwoAreWelchs) {
  const AllPairs found = all_pairs(std::span(kSystems).first(2));
  const Interval welch = difference_interval(kSystems[0], kSystems[1]);
  EXPECT_NEAR(found.pairs[0].interval.low, welch.low, 1e-12);
  EXPECT_NEAR(found.pairs[0].interval.high, welch.high, 1e-12);
}

// A plan for the families and runs that are there judges by the rule of the analysis: as many
// runs of both sides have Welch's degrees.
TEST(PlanDifference, JudgesAsCompareDoes) {
  RunScoreTable a = golden_scores(1), b = golden_scores(11);
  a.families = b.families = {"a", "b", "c", "d", "e", "f", "g"};
  for (auto* side : {&a, &b}) {
    for (std::size_t g = 0; g < 7; ++g) {
      const double own = side == &a ? 0.001 * static_cast<double>(g % 3) : 0;
      side->scores[g] = {0.5 + own, 0.56 + own, 0.47 + own};
    }
  }
  const Interval found = compare(a, b).other_families->interval.interval;
  EXPECT_NEAR(found.degrees, 4, 0.1);
  const double sure = detectable(found.error * found.error, found.degrees);
  const DifferencePlan plan = plan_difference(a, b, 1.01 * sure);
  EXPECT_LE(plan.families->number.value(), 7);
}

// More runs of one side alone help, too.
TEST(PlanDifference, CountsTheRunsOfEachSide) {
  const RunScoreTable a = golden_scores(1);
  RunScoreTable b = golden_scores(11), more = b;
  for (auto& own : more.scores) {
    for (int i = 0; i < 5; ++i) own.insert(own.end(), own.begin(), own.begin() + 3);
  }
  const auto families = [&](const RunScoreTable& other) {
    return plan_difference(a, other, 0.05).families->number.value_or(10'001);
  };
  EXPECT_LE(families(more), families(b));
}

}  // namespace
}  // namespace tpudist
