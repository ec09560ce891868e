#include "train/loop/member_stops.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "dist/collectives/communicator.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/run_folder.hpp"
#include "results/records/settings.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The step at which a member with these scores stops, -1 when it does not.
std::int64_t stop_of(const EarlyStopConfig& config, const std::vector<double>& scores) {
  EarlyStop stop(config, 1);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    stop.take(std::span(&scores[i], 1), {!stop.has_stopped(0)}, static_cast<std::int64_t>(i));
  }
  return stop.stopped_at[0];
}

TEST(EarlyStop, WaitsForABetterScoreAsLongAsItsPatience) {
  const EarlyStopConfig two{.patience = 2, .min_delta = 0};
  EXPECT_EQ(stop_of(two, {0.1, 0.2, 0.2, 0.1, 0.9}), 3);  // an equal score is no better
  EXPECT_EQ(stop_of(two, {0.1, 0.0, 0.2, 0.1, 0.3}), -1);
  EXPECT_EQ(stop_of(two, {0.1, 0.0}), -1);
  EXPECT_EQ(stop_of({.patience = 1, .min_delta = 0}, {-0.5, -0.6}), 1);
  EXPECT_EQ(stop_of({.patience = 0, .min_delta = 0}, {0.3, 0.2, 0.1, 0.0}), -1);
}

TEST(EarlyStop, CountsOnlyScoresThatAreBetterByMinDelta) {
  // Each is better than the one before by 0.04, and only the last than 0.1 by more than 0.1.
  const std::vector<double> rising = {0.1, 0.14, 0.18, 0.22};
  EXPECT_EQ(stop_of({.patience = 2, .min_delta = 0.1}, rising), 2);
  EXPECT_EQ(stop_of({.patience = 3, .min_delta = 0.1}, rising), -1);
}

TEST(EarlyStop, TakesAScoreThatIsNoNumberAsNoBetter) {
  const EarlyStopConfig two{.patience = 2, .min_delta = 0};
  EXPECT_EQ(stop_of(two, {kNan, kNan, 0.5}), 1);
  EXPECT_EQ(stop_of(two, {kNan, 0.5, kNan, 0.6}), -1);
}

TEST(EarlyStop, JudgesEachMemberAlone) {
  EarlyStop stop({.patience = 1, .min_delta = 0}, 3);
  stop.take(std::vector{0.5, 0.5, 0.5}, {true, true, true}, 10);
  stop.take(std::vector{0.6, 0.4, 0.4}, {true, true, false}, 20);
  EXPECT_THAT(stop.stopped_at, ElementsAre(-1, 20, -1));
  EXPECT_THAT(stop.waited, ElementsAre(0, 1, 0));
}

std::vector<float> parameters(const Checkpoint& checkpoint, std::size_t member) {
  const std::size_t length = checkpoint.parameters.size() / 3;
  const auto begin = checkpoint.parameters.begin() + static_cast<std::ptrdiff_t>(member * length);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

using EarlyStoppedRun = TrainTest;

// Of more rows than those on the way, the last scores may be better by luck.
TEST_F(EarlyStoppedRun, BestScoresAreOfTheRowsThatStopIt) {
  const Experiment experiment =
      tiny_experiment({"optimizer.lr=0", "train.evaluate_every=1", "train.evaluate_rows=6",
                       "train.early_stop.patience=2"});
  const TrainOutcome outcome = run(experiment, folder / "run");
  ASSERT_THAT(outcome.stopped_early, SizeIs(3));
  for (const EarlyStopped& stopped : outcome.stopped_early) EXPECT_EQ(stopped.best_step, 1);
}

// Without a learning rate no score is better than the first.
TEST_F(EarlyStoppedRun, EndsWhenNoMemberTrainsAnyMore) {
  const Experiment experiment =
      tiny_experiment({"optimizer.lr=0", "train.evaluate_every=1", "train.early_stop.patience=2"});
  const TrainOutcome outcome = run(experiment, folder / "run");
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(outcome.steps, 3);
  ASSERT_THAT(outcome.stopped_early, SizeIs(3));
  for (int m = 0; m < 3; ++m) {
    EXPECT_EQ(outcome.stopped_early[m].member, m);
    EXPECT_EQ(outcome.stopped_early[m].step, 3);
    EXPECT_EQ(outcome.stopped_early[m].best_step, 1);
    EXPECT_EQ(outcome.stopped_early[m].best_score,
              checkpoint_at(folder / "run", experiment, 3).best_score[m]);
  }
  EXPECT_TRUE(outcome.evaluation.has_value());
  const auto scores = nlohmann::json::parse(read_text_file(RunFolder(folder / "run").scores()));
  ASSERT_EQ(scores["stopped_early"].size(), 3u);
  EXPECT_EQ(scores["stopped_early"][2]["number"], 2);
  EXPECT_EQ(scores["stopped_early"][2]["step"], 3);
  const TrainOutcome again = run(experiment, folder / "run", 1, /*resume=*/true);
  EXPECT_EQ(again.steps, 3);
  EXPECT_EQ(again.parameter_hash, outcome.parameter_hash);
  EXPECT_THAT(again.stopped_early, SizeIs(3));
}

// An experiment in which nobody loses patience.
Experiment patient(std::vector<std::string> more = {}) {
  more.insert(more.end(), {"train.evaluate_every=1", "train.early_stop.patience=1000",
                           "train.checkpoint_every=2", "train.keep_checkpoints=10",
                           "train.average={kind: ema, decay: 0.5}"});
  return tiny_experiment(more);
}

// Trains two steps, and lets member 1 stop at the next evaluation, after step 3.
void start_with_an_impatient_member(const Experiment& experiment, const fs::path& folder) {
  run(experiment, folder, 1, false, stop_after(2));
  test::change_checkpoint(checkpoint_path(folder / "checkpoints", 2), experiment,
                          [](Checkpoint& checkpoint, const auto&) {
                            checkpoint.stop_best[1] = 1;
                            checkpoint.stop_waited[1] = 999;
                          });
}

using EarlyStoppedMember = TrainTest;

TEST_F(EarlyStoppedMember, KeepsItsWeightsAndLeavesTheOthersAsTheyWere) {
  const Experiment experiment = patient();
  EXPECT_THAT(run(experiment, folder / "all").stopped_early, IsEmpty());
  start_with_an_impatient_member(experiment, folder / "run");
  const TrainOutcome outcome = run(experiment, folder / "run", 1, true);
  EXPECT_EQ(outcome.steps, 6);
  ASSERT_THAT(outcome.stopped_early, SizeIs(1));
  EXPECT_EQ(outcome.stopped_early[0].member, 1);
  EXPECT_EQ(outcome.stopped_early[0].step, 3);

  const Checkpoint all = checkpoint_at(folder / "all", experiment, 6);
  const Checkpoint last = checkpoint_at(folder / "run", experiment, 6);
  EXPECT_EQ(parameters(last, 0), parameters(all, 0));
  EXPECT_EQ(parameters(last, 2), parameters(all, 2));
  EXPECT_EQ(parameters(last, 1), parameters(checkpoint_at(folder / "run", experiment, 4), 1));
  EXPECT_NE(parameters(last, 1), parameters(checkpoint_at(folder / "run", experiment, 2), 1));
  EXPECT_LE(last.optimizer_steps[1], 3);
  EXPECT_THAT(last.average_points, ElementsAre(6, 3, 6));
  EXPECT_TRUE(outcome.evaluation->used[1]);  // it is a member like the others
}

TEST_F(EarlyStoppedMember, StaysStoppedWhenTheRunIsResumed) {
  const Experiment experiment = patient();
  start_with_an_impatient_member(experiment, folder / "once");
  start_with_an_impatient_member(experiment, folder / "twice");
  const TrainOutcome once = run(experiment, folder / "once", 1, true);
  run(experiment, folder / "twice", 1, true, stop_after(3));  // from 2 to 5
  const TrainOutcome twice = run(experiment, folder / "twice", 2, true);
  EXPECT_EQ(twice.parameter_hash, once.parameter_hash);
  EXPECT_EQ(twice.average_hash, once.average_hash);
  ASSERT_THAT(twice.stopped_early, SizeIs(1));
  EXPECT_EQ(twice.stopped_early[0].step, 3);
}

// What is prepared for a step holds nothing of members that do not train.
TEST_F(EarlyStoppedMember, IsNotComputed) {
  const Experiment experiment = tiny_experiment({"ensemble.folds=none"});
  const OneRankSetup setup(experiment);
  const StepBuilder builder = setup.steps_of(0);
  const StepWork all = builder.build(0), two = builder.build(0, {true, false, true});
  const auto count = [](const StepWork& work, int member) {
    int units = 0;
    for (const UnitPass& pass : work.passes) {
      units += pass.first_member <= member && member < pass.first_member + pass.members;
    }
    return units;
  };
  for (const int member : {0, 1, 2}) EXPECT_EQ(count(all, member), 3) << member;
  EXPECT_EQ(count(two, 0), 3);
  EXPECT_EQ(count(two, 1), 0);
  EXPECT_EQ(count(two, 2), 3);
  EXPECT_EQ(two.batch.weights[0], all.batch.weights[0]);
}

TEST(EarlyStopKeys, NeedEvaluationsOnTheWay) {
  try {
    tiny_experiment({"train.early_stop={patience: 2}"});
    FAIL() << "taken without train.evaluate_every";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("give train.evaluate_every"));
  }
}

TEST(EarlyStopKeys, NeedValidationGraphs) {
  const TempDir folder;
  const Experiment experiment =
      tiny_experiment({"train.evaluate_every=1", "train.early_stop={patience: 2}",
                       "data.include.valid=[nothing_is_called_so]"});
  EXPECT_THROW(run(experiment, folder / "run"), ConfigError);
  EXPECT_FALSE(fs::exists(folder / "run"));
}

// The best of two rows is high by luck, and no score of more rows would ever be better.
TEST(BestScores, OfOtherRowsAreForgottenOnResume) {
  const TempDir folder;
  const std::string every = "train.evaluate_every=1";
  const Experiment many = tiny_experiment({every, "train.evaluate_rows=20"});
  run(tiny_experiment({every, "train.evaluate_rows=2"}), folder / "run", 1, false, stop_after(3));
  run(many, folder / "run", 1, true);
  for (const std::int64_t step : checkpoint_at(folder / "run", many, 6).best_step)
    EXPECT_GT(step, 3);
  EXPECT_GT(CheckpointFile(best_checkpoint_path(folder / "run/checkpoints")).summary().step, 3);
}

// When and on which rows members are scored may change on resume, unless they stop by these scores.
TEST(EarlyStopKeys, MakeTheEvaluationsDecideTheNumbers) {
  const auto changes = [](const std::string& patience) {
    const std::string stop = "train.early_stop.patience=" + patience;
    return changed_settings(
        tiny_experiment({stop, "train.evaluate_every=2", "train.evaluate_rows=50"}).entries,
        tiny_experiment({stop, "train.evaluate_every=1", "train.evaluate_rows=60"}).entries);
  };
  EXPECT_THAT(changes("0"), IsEmpty());
  EXPECT_THAT(changes("2"),
              ElementsAre("train.evaluate_every: 2 -> 1", "train.evaluate_rows: 50 -> 60"));
}

}  // namespace
}  // namespace tpudist::test
