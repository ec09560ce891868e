#include "results/records/learning_curves.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/results/scores/run_case.hpp"

namespace tpudist {
namespace {

using test::kMetrics;
using test::TempDir;
using test::write_text;

TEST(LearningCurvesTest, ReadsStepsAndEvaluations) {
  const TempDir folder;
  write_text(folder / "metrics.jsonl", kMetrics);
  const LearningCurves curves = read_learning_curves(folder / "metrics.jsonl");
  ASSERT_EQ(curves.steps.size(), 2u);
  EXPECT_EQ(curves.steps[0].step, 50);
  EXPECT_EQ(curves.steps[0].loss[1], 2.0);
  EXPECT_TRUE(std::isnan(curves.steps[0].loss[2]));
  EXPECT_EQ(curves.steps[0].wait_seconds, 0.125);
  ASSERT_EQ(curves.evaluations.size(), 1u);
  EXPECT_EQ(curves.evaluations[0].rows, 8);
  EXPECT_EQ(curves.evaluations[0].ensemble, 0.75);
  EXPECT_TRUE(std::isnan(curves.evaluations[0].members[2]));
  EXPECT_EQ(curves.last_step(), 100);
  EXPECT_EQ(curves.damaged_lines, 0);
  EXPECT_FALSE(curves.torn_end);
}

TEST(LearningCurvesTest, PassesOverDamagedLinesAndATornEnd) {
  const TempDir folder;
  write_text(folder / "metrics.jsonl",
             std::string("\x01garbage\n{\"kind\":\"step\",\"step\":\"x\"}\n[]\n") + kMetrics +
                 R"({"kind":"step","st)");
  const LearningCurves curves = read_learning_curves(folder / "metrics.jsonl");
  EXPECT_EQ(curves.steps.size(), 2u);
  EXPECT_EQ(curves.damaged_lines, 3);
  EXPECT_TRUE(curves.torn_end);
}

TEST(LearningCurvesTest, KnowsTheStartThatTookAStep) {
  LearningCurves curves;
  curves.starts = {{.step = 0, .commit = "a"},
                   {.step = 4, .commit = "b"},  // took no step
                   {.step = 4, .commit = "c"}};
  EXPECT_EQ(curves.start_of(0), nullptr);
  EXPECT_EQ(curves.start_of(4)->commit, "a");
  EXPECT_EQ(curves.start_of(5)->commit, "c");
}

TEST(LearningCurvesTest, ARunThatLoggedNothingHasNone) {
  const TempDir folder;
  const LearningCurves curves = read_learning_curves(folder / "metrics.jsonl");
  EXPECT_TRUE(curves.steps.empty());
  EXPECT_EQ(curves.last_step(), 0);
}

}  // namespace
}  // namespace tpudist
