// Runs that keep averages of their weights.

#include <gmock/gmock.h>

#include <algorithm>

#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

namespace fs = std::filesystem;

constexpr const char* kEma = "train.average={kind: ema, decay: 0.5}";
constexpr const char* kSwa = "train.average={kind: swa, from: 0.5}";

using Average = TrainTest;

TEST_F(Average, IsTheMeanOfTheWeightsOfItsSteps) {
  const Experiment experiment =
      tiny_experiment({kSwa, "train.checkpoint_every=1", "train.keep_checkpoints=10"});
  run(experiment, folder / "run");
  const Checkpoint last = checkpoint_at(folder / "run", experiment, 6);
  EXPECT_THAT(last.average_points, ElementsAre(3, 3, 3));
  std::vector<float> mean(last.parameters.size());
  for (const std::int64_t step : {4, 5, 6}) {
    const Checkpoint saved = checkpoint_at(folder / "run", experiment, step);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += saved.parameters[i] / 3;
  }
  EXPECT_THAT(last.average, Pointwise(FloatNear(1e-6f), mean));
  EXPECT_NE(last.average, last.parameters);
  EXPECT_THAT(checkpoint_at(folder / "run", experiment, 3).average_points, ElementsAre(0, 0, 0));
}

TEST_F(Average, ChangesNoBitOfTheTraining) {
  const std::uint64_t plain = run(tiny_experiment(), folder / "plain").parameter_hash;
  for (const char* average : {kEma, kSwa}) {
    const TempDir own;
    const TrainOutcome outcome = run(tiny_experiment({average}), own / "run");
    EXPECT_EQ(outcome.parameter_hash, plain);
    ASSERT_TRUE(outcome.average_hash.has_value());
    EXPECT_NE(*outcome.average_hash, plain);
  }
}

TEST_F(Average, ResumesWithTheSameBitsOnAnyNumberOfThreads) {
  const Experiment experiment = tiny_experiment({kEma, "train.checkpoint_every=2"});
  const TrainOutcome whole = run(experiment, folder / "whole");
  run(experiment, folder / "cut", 3, false, stop_after(3));
  const TrainOutcome resumed = run(experiment, folder / "cut", 2, true);
  EXPECT_EQ(resumed.average_hash, whole.average_hash);
  EXPECT_EQ(resumed.evaluation->ensemble_mean(), whole.evaluation->ensemble_mean());
}

TEST_F(Average, IsWhatIsScoredUnlessTheRawWeightsAreAskedFor) {
  const Experiment experiment = tiny_experiment({kSwa, "train.evaluate_every=2"});
  run(experiment, folder / "run");
  const Checkpoint saved = checkpoint_at(folder / "run", experiment, 6);
  const TrainedRun averaged = open_run(folder / "run");
  const TrainedRun raw = open_run(folder / "run", "last", Weights::raw);
  EXPECT_TRUE(std::ranges::equal(averaged.flat, saved.average));
  EXPECT_TRUE(std::ranges::equal(raw.flat, saved.parameters));
  EXPECT_EQ(opened_at(averaged), "step 6, averaged weights");
  EXPECT_EQ(opened_at(raw), "step 6");
  const TrainedRun best = open_run(folder / "run", "best");
  EXPECT_TRUE(best.averaged);
}

// The scores of the last step are those of the average: a run that takes one point, the last, has
// the scores of a run without an average.
TEST_F(Average, IsWhatTheEvaluationScores) {
  const auto scores = [&](const std::string& average) {
    return run(tiny_experiment({"optimizer.lr=0.02", "train.average=" + average}),
               folder / std::to_string(average.size()))
        .evaluation->member_means();
  };
  const auto plain = scores("{kind: none}");
  EXPECT_EQ(scores("{kind: swa, from: 0, every: 6}"), plain);
  EXPECT_NE(scores("{kind: swa, from: 0.0}"), plain);
}

TEST_F(Average, OfAMemberThatFailsStaysWhatItWas) {
  const Experiment experiment = tiny_experiment({kEma, "train.checkpoint_every=2"});
  const TrainOutcome whole = run(experiment, folder / "whole");
  const Checkpoint all = checkpoint_at(folder / "whole", experiment, 6);

  run(experiment, folder / "hurt", 1, false, stop_after(2));
  fs::copy(folder / "hurt", folder / "stopped", fs::copy_options::recursive);
  test::spoil_member(checkpoint_path(folder / "hurt/checkpoints", 2), experiment, 1);
  EXPECT_THAT(run(experiment, folder / "hurt", 1, true).failed, ElementsAre(1));
  const Checkpoint hurt = checkpoint_at(folder / "hurt", experiment, 6);
  EXPECT_THAT(hurt.average_points, ElementsAre(6, 2, 6));
  const auto of_member = [&](const Checkpoint& checkpoint, std::int64_t member) {
    const std::int64_t length = std::ssize(checkpoint.average) / 3;
    const auto begin = checkpoint.average.begin() + member * length;
    return std::vector<float>(begin, begin + length);
  };
  EXPECT_EQ(of_member(hurt, 1), of_member(checkpoint_at(folder / "stopped", experiment, 2), 1));
  for (const std::int64_t member : {0, 2})
    EXPECT_EQ(of_member(hurt, member), of_member(all, member));
}

}  // namespace
}  // namespace tpudist::test
