#include "statistics/comparison.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "tests/statistics/golden_scores.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;

RunScores shifted(RunScores scores, double shift) {
  for (auto& own : scores.scores) {
    for (double& score : own) score += shift;
  }
  return scores;
}

RunScores first_run_of(RunScores scores) {
  for (auto& own : scores.scores) own.resize(1);
  return scores;
}

std::string refusal_of(const RunScores& a, const RunScores& b) {
  return testing::message_of<DataError>([&] { compare(a, b); });
}

// Golden numbers: tests/golden/statistics_comparison.py.
TEST(Compare, EqualsSciPyOnTheseGraphs) {
  const Comparison found = compare(golden_scores(1), golden_scores(11));
  EXPECT_NEAR(found.difference, 0.03828571428571437, 1e-12);
  ASSERT_TRUE(found.these_graphs.interval);
  EXPECT_NEAR(found.these_graphs.interval->low, -0.006514867097001616, 1e-12);
  EXPECT_DOUBLE_EQ(found.these_graphs.test.p, 0.1);
}

TEST(Compare, ExchangesRunsWithinFolds) {
  const Comparison found = compare(golden_scores(1, true), golden_scores(11, true));
  EXPECT_TRUE(found.out_of_fold);
  EXPECT_EQ(found.these_graphs.test.labellings, 400);
  EXPECT_DOUBLE_EQ(found.these_graphs.test.p, 0.225);
}

TEST(Compare, EqualsTheTwoWayAnalysisOnOtherFamilies) {
  const Comparison found = compare(golden_scores(1), golden_scores(11));
  ASSERT_TRUE(found.other_families);
  const auto& other = *found.other_families;
  EXPECT_NEAR(other.interval.interval.degrees, 2.5854292536665775, 1e-9);
  EXPECT_NEAR(other.interval.interval.low, -0.18185682041700296, 1e-10);
  EXPECT_NEAR(other.interval.interval.high, 0.2584282489884317, 1e-10);
  EXPECT_NEAR(other.p, 0.5928212798015964, 1e-10);
  EXPECT_DOUBLE_EQ(other.signs.p, 0.875);
  EXPECT_DOUBLE_EQ(other.signs.smallest_p, 0.125);
  EXPECT_NEAR(other.shake_up.chance, 0.6512978677203816, 1e-10);
  EXPECT_NEAR(other.shake_up.regret, 0.03812230303077583, 1e-8);
}

// Without any difference between graphs more runs find everything; beyond it nothing does.
TEST(Compare, TellsWhatNoNumberOfRunsCanShow) {
  const Comparison shift = compare(golden_scores(1), shifted(golden_scores(1), -0.01));
  ASSERT_TRUE(shift.other_families);
  EXPECT_EQ(shift.other_families->detectable, 0);
  ASSERT_TRUE(shift.other_families->runs_needed);
  EXPECT_EQ(shift.other_families->runs_needed > 3, true);
  const Comparison other = compare(golden_scores(1), golden_scores(11));
  EXPECT_GT(other.other_families->detectable, 0.0383);
  EXPECT_FALSE(other.other_families->runs_needed);
}

TEST(Compare, OfOneRunEachSaysWhatIsMissing) {
  const Comparison found = compare(first_run_of(golden_scores(1)), first_run_of(golden_scores(11)));
  EXPECT_FALSE(found.these_graphs.interval);
  EXPECT_FALSE(found.these_graphs.runs_needed);
  EXPECT_FALSE(found.these_graphs.test.can_tell());
  ASSERT_TRUE(found.other_families);
  EXPECT_EQ(found.other_families->interval.runs, 1);
  EXPECT_EQ(found.other_families->interval.run_variance, 0);
}

TEST(Compare, OfOneFamilySaysNothingOfOthers) {
  RunScores a = golden_scores(1), b = golden_scores(11);
  a.families.assign(7, "bert");
  b.families.assign(7, "bert");
  EXPECT_FALSE(compare(a, b).other_families);
}

TEST(Compare, IsAntisymmetric) {
  const Comparison ab = compare(golden_scores(1), golden_scores(11)),
                   ba = compare(golden_scores(11), golden_scores(1));
  EXPECT_DOUBLE_EQ(ab.difference, -ba.difference);
  EXPECT_DOUBLE_EQ(ab.these_graphs.test.p, ba.these_graphs.test.p);
  EXPECT_NEAR(ab.other_families->interval.interval.low, -ba.other_families->interval.interval.high,
              1e-12);
  EXPECT_NEAR(ab.other_families->shake_up.regret, ba.other_families->shake_up.regret, 1e-12);
}

TEST(Compare, RefusesOtherGraphsAndFolds) {
  RunScores renamed = golden_scores(11);
  renamed.graphs[3] = "other";
  EXPECT_THAT(refusal_of(golden_scores(1), renamed), HasSubstr("graph 3 is g3 (b) of one side"));
  EXPECT_THAT(refusal_of(golden_scores(1), golden_scores(11, true)), HasSubstr("fold"));
  RunScores fewer = golden_scores(11);
  for (auto* list : {&fewer.graphs, &fewer.families}) list->pop_back();
  fewer.scores.pop_back();
  EXPECT_THAT(refusal_of(golden_scores(1), fewer), HasSubstr("7 graphs, the other 6"));
}

}  // namespace
}  // namespace tpudist
