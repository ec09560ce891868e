#include "train/loop/time_limit.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

// The end of a Slurm job so many seconds from now, while it lives.
class SlurmJob {
 public:
  explicit SlurmJob(const std::string& end) { setenv("SLURM_JOB_END_TIME", end.c_str(), 1); }
  ~SlurmJob() { unsetenv("SLURM_JOB_END_TIME"); }
};

std::string seconds_from_now(int seconds) {
  return std::to_string(std::time(nullptr) + seconds);
}

TEST(TimeLimit, LeavesTimeForTheLongestStepAndACheckpoint) {
  double now = 1000;
  TimeLimit limit({.seconds = 100, .slurm = false}, 0, [&] { return now; });
  EXPECT_FALSE(limit.is_over());
  now += 30;  // the first step warms up, and says nothing of the others
  EXPECT_FALSE(limit.is_over());
  now += 10;
  EXPECT_FALSE(limit.is_over());
  limit.wrote_checkpoint(4);
  now += 5;
  EXPECT_FALSE(limit.is_over());
  // 45 s are over: 1.2 x 10 s and 2 x 4 s are taken off the 100 s.
  now = 1079;
  EXPECT_TRUE(limit.is_over());  // this step was the longest

  now = 2000;
  TimeLimit exact({.seconds = 100, .slurm = false}, 0, [&] { return now; });
  exact.wrote_checkpoint(4);
  for (int step = 0; step <= 9; ++step, now += 10) EXPECT_EQ(exact.is_over(), step >= 8) << step;
}

TEST(TimeLimit, AlwaysAllowsAStep) {
  double now = 0;
  TimeLimit limit({.seconds = 0, .slurm = false}, 0, [&] { return now; });
  EXPECT_FALSE(limit.is_over());
  EXPECT_TRUE(limit.is_over());
}

TEST(TimeLimit, ReckonsACheckpointBeforeItHasSeenOne) {
  double now = 0;
  TimeLimit limit({.seconds = 100, .slurm = false}, 50e6 * 20, [&] { return now; });
  EXPECT_FALSE(limit.is_over());
  now = 59;
  EXPECT_FALSE(limit.is_over());  // 2 x 20 s are taken off
  TimeLimit other({.seconds = 100, .slurm = false}, 50e6 * 20, [&] { return now; });
  EXPECT_FALSE(other.is_over());
  now = 59 + 60;
  EXPECT_TRUE(other.is_over());
}

TEST(TimeLimit, IsNoneWithoutOne) {
  double now = 0;
  TimeLimit limit({.seconds = std::nullopt, .slurm = true}, 0, [&] { return now; });
  EXPECT_FALSE(limit.is_over());
  now = 1e9;
  EXPECT_FALSE(limit.is_over());
}

TEST(TimeLimit, HeedsTheEndOfTheSlurmJob) {
  const SlurmJob job("5000");
  EXPECT_EQ(slurm_seconds_left(4000), 1000);
  EXPECT_FALSE(slurm_seconds_left(5000));  // of another time
  const SlurmJob odd("5000x");
  EXPECT_FALSE(slurm_seconds_left(4000));
  const SlurmJob far("99999999999");
  const auto is_over = [](const TimeLimitConfig& config, double seconds) {
    double now = 0;
    TimeLimit limit(config, 0, [&] { return now; });
    limit.is_over();  // the first step is always allowed
    now = seconds;
    return limit.is_over();
  };
  EXPECT_TRUE(is_over({.seconds = std::nullopt, .slurm = true}, 1e12));
  EXPECT_FALSE(is_over({.seconds = std::nullopt, .slurm = false}, 1e12));
  EXPECT_FALSE(is_over({.seconds = 7, .slurm = true}, 6));
  EXPECT_TRUE(is_over({.seconds = 7, .slurm = true}, 7));
}

TEST(TimeLimit, StopsARunThatGoesOnWithTheSameBits) {
  const TempDir folder;
  const TrainOutcome whole = run(tiny_experiment(), folder / "whole");
  const Experiment hurried = tiny_experiment({"train.time_limit=0"});
  TrainOutcome outcome = run(hurried, folder / "run");
  // After the last step it stops before the evaluation, which the next start then begins with.
  for (std::int64_t steps = 1; steps <= whole.steps; ++steps) {
    EXPECT_TRUE(outcome.stopped);
    EXPECT_TRUE(outcome.out_of_time);
    EXPECT_EQ(outcome.steps, steps);
    outcome = run(hurried, folder / "run", 1, /*resume=*/true);
  }
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(outcome.steps, whole.steps);
  EXPECT_EQ(outcome.parameter_hash, whole.parameter_hash);
  EXPECT_EQ(outcome.evaluation->member_means(), whole.evaluation->member_means());
}

// Each start would begin them again.
TEST(TimeLimit, RefusesScoresThatDoNotFitIntoAStartOfTheirOwn) {
  const TempDir folder;
  const std::string steps = "train.steps=1", rows = "predictions.rows=all";
  const Experiment hurried = tiny_experiment({steps, rows, "train.time_limit=0"});
  const TrainOutcome outcome = run(hurried, folder / "run");
  EXPECT_TRUE(outcome.out_of_time);
  EXPECT_EQ(outcome.steps, 1);
  try {
    test::resume(hurried, folder / "run");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failed);
    EXPECT_THAT(error.what(), HasSubstr("after the last step do not fit into the job's time"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "run/predictions.h5"));
  // A stop on request is none of that.
  const TrainOutcome stopped =
      run(tiny_experiment({steps, rows}), folder / "run", 1, true, stop_after(1));
  EXPECT_TRUE(stopped.stopped);
  EXPECT_FALSE(stopped.out_of_time);
  EXPECT_FALSE(test::resume(tiny_experiment({steps, rows}), folder / "run").stopped);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/predictions.h5"));
}

TEST(TimeLimit, TakesARequestShortlyBeforeTheEndOfTheSlurmJobForItsWarning) {
  const TempDir folder;
  const auto stopped_in_job = [&](int seconds) {
    const SlurmJob job(seconds_from_now(seconds));
    EXPECT_EQ(slurm_job_ends_soon(), seconds < 360);
    const TrainOutcome outcome =
        run(tiny_experiment(), folder / std::to_string(seconds), 1, false, stop_after(1));
    EXPECT_TRUE(outcome.stopped);
    EXPECT_EQ(outcome.steps, 1);
    return outcome.out_of_time;
  };
  EXPECT_TRUE(stopped_in_job(300));
  EXPECT_FALSE(stopped_in_job(3600));
  EXPECT_FALSE(slurm_job_ends_soon());
}

TEST(TimeLimit, IsReadFromText) {
  EXPECT_EQ(tiny_experiment({"train.time_limit=7h30m"}).train.time_limit.seconds, 27000);
  EXPECT_TRUE(tiny_experiment({"train.time_limit=auto"}).train.time_limit.slurm);
  EXPECT_FALSE(tiny_experiment({"train.time_limit=none"}).train.time_limit.slurm);
  EXPECT_THROW(tiny_experiment({"train.time_limit=soon"}), ConfigError);
  EXPECT_EQ(tiny_experiment({"dist.timeout=15m"}).dist.timeout, 900);
  EXPECT_EQ(tiny_experiment({"dist.timeout=0"}).dist.timeout, 0);
  EXPECT_THROW(tiny_experiment({"dist.timeout=-1"}), ConfigError);
}

}  // namespace
}  // namespace tpudist::test
