#include "results/records/run_folder.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "results/records/initial_and_final_loss.hpp"
#include "results/records/learning_curves.hpp"
#include "tests/results/scores/run_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

template <typename Kind>
std::string error_of_opening(const std::filesystem::path& path) {
  return message_of<Kind>([&] { RunFolder::open(path); });
}

TEST(RunFolder, OpensWhatHoldsAConfigurationAndMetrics) {
  const TempDir folder;
  std::ofstream(folder / "config.yaml") << "name: x\n";
  EXPECT_THAT(error_of_opening<ConfigError>(folder.path()),
              HasSubstr("no run here (config.yaml is there, but no checkpoints)"));
  std::ofstream(folder / "metrics.jsonl") << "{}\n";
  EXPECT_EQ(RunFolder::open(folder.path()).path(), folder.path());
}

TEST(RunFolder, TellsAMissingRunFromAFolderThatCannotBeEntered) {
  const TempDir folder;
  EXPECT_THAT(error_of_opening<ConfigError>(folder / "none"),
              HasSubstr("no run here (there are neither config.yaml nor checkpoints)"));
  // A link to itself cannot be entered by anybody, root included.
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THAT(error_of_opening<IoError>(folder / "loop"),
              HasSubstr("loop: cannot look for a run: Too many levels of symbolic links"));
}

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

TEST(InitialAndFinalLoss, ComeFromAllStepsAndSayWhatIsNoise) {
  std::vector<double> kept = no_losses(3);
  for (int step = 0; step < 40; ++step) {
    add_loss(kept, 0, step, 40, step < 4 ? 5 + step : step % 2);  // 5, 6, 7, 8, ..., 0, 1, 0, 1
    if (step < 30) add_loss(kept, 1, step, 40, 2);                // stopped early
    if (step < 19) add_loss(kept, 2, step, 40, 2);
  }
  const auto ends = loss_ends(kept);
  EXPECT_DOUBLE_EQ(ends[0].first, 6.5);
  EXPECT_DOUBLE_EQ(ends[0].last, 0.5);
  // t of 0.99 with 3 degrees of freedom; variance 5 / 3 of the first 4 losses.
  EXPECT_NEAR(ends[0].margin, 4.5407 * std::sqrt(5.0 / 3 * (1.0 / 4 + 1.0 / 4)), 1e-3);
  EXPECT_EQ(ends[1].last, 2);
  EXPECT_EQ(ends[1].margin, 0);
  EXPECT_THAT(ends[2].first, IsNan());  // 19 are too few
  add_loss(kept, 0, 50, 40, 1);         // a benchmark takes more steps than planned
  add_loss(kept, 0, 0, 0, 1);
}

// Its last losses vary as much as they rise, which is no noise.
TEST(InitialAndFinalLoss, AreFartherApartThanNoiseWhereATrainingDiverges) {
  std::vector<double> kept = no_losses(1);
  for (int step = 0; step < 60; ++step) add_loss(kept, 0, step, 60, std::pow(3.0, step));
  const InitialAndFinalLoss ends = loss_ends(kept)[0];
  EXPECT_GT(ends.last - ends.first, ends.margin);
}

}  // namespace
}  // namespace tpudist::test
