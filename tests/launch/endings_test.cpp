#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/launch/ranks_case.hpp"

// How jobs of several ranks end when one of them dies, fails, hangs or has no time left.
namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

// Whether a process comes to its end, at most a few seconds after mpirun has left. One that nobody
// has waited for yet (state Z) counts as ended.
bool ends(pid_t process) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < limit) {
    const std::string status = content("/proc/" + std::to_string(process) + "/stat");
    if (status.empty() || status.find(") Z") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class Endings : public Ranks {};

TEST_F(Endings, EndTogetherWhenOneDies) {
  const std::string arguments = train_arguments("killed", "train.steps=1000000");
  MpiProgram job({{arguments}, {arguments}});
  ASSERT_TRUE(job.wait_for("step       2/"));
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 2u);
  ASSERT_EQ(kill(ranks[1], SIGKILL), 0);
  const Outcome outcome = job.finish();
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.exit_code, 124) << "the job went on";
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("rank 1"), HasSubstr("signal 9")));
  for (const pid_t rank : ranks) EXPECT_TRUE(ends(rank)) << "a rank is left over";
}

// Only rank 0 writes: what it cannot write costs lines of the log, and no step.
TEST_F(Endings, DoNotComeWithALogThatCannotBeWritten) {
  const std::string arguments = train_arguments("no-log", "train.steps=1000000");
  MpiProgram job({{arguments}, {arguments}});
  ASSERT_TRUE(job.wait_for("step       2/"));
  replace_by_folder(path("no-log/metrics.jsonl"));
  ASSERT_TRUE(job.wait_for("metrics.jsonl: Is a directory; training goes on"));
  ASSERT_EQ(kill(job.ranks().at(1), SIGUSR1), 0);
  EXPECT_THAT(output_of(job.finish(), 85),
              AllOf(HasSubstr("; the log lacks "), HasSubstr("stopped on request after step")));
}

TEST_F(Endings, EndTogetherWhenOneHangs) {
  const std::string arguments =
      train_arguments("stopped", "train.steps=1000000 dist.timeout=4 train.checkpoint_every=1");
  MpiProgram job({{arguments}, {arguments}, {arguments}});
  // By then rank 1 has said in its file that it trains: it does so ten times a second.
  ASSERT_TRUE(job.wait_for("step      50/"));
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 3u);
  ASSERT_EQ(kill(ranks[1], SIGSTOP), 0);
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = job.finish();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4 + 5));
  EXPECT_EQ(outcome.exit_code, 86) << outcome.output;
  EXPECT_THAT(
      outcome.output,
      AllOf(ContainsRegex("warning rank 1 silent for "),
            ContainsRegex(
                "nothing was finished for 4 s \\(dist.timeout\\): ranks* [0-9, ]+ waits* in "
                "collective [0-9]+ \\([a-z_]+\\), rank 1 (has not arrived|does not answer)"),
            ContainsRegex(
                "tpudist: rank 1 .*: (training|checkpoint), step .*stopped, gone or cut off"),
            ContainsRegex("the newest checkpoint is .*stopped/checkpoints/step-[0-9]+.h5")));
  for (const pid_t rank : ranks) EXPECT_TRUE(ends(rank)) << "a rank is left over";
}

TEST_F(Endings, GoOnWhileOneIsOnlySlow) {
  const std::string arguments = train_arguments("slow", "train.steps=1000000 dist.timeout=4");
  MpiProgram job({{arguments}, {arguments}});
  ASSERT_TRUE(job.wait_for("step       3/"));
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 2u);
  for (int i = 0; i < 6; ++i) {  // longer than the timeout in all
    ASSERT_EQ(kill(ranks[1], SIGSTOP), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(900));
    ASSERT_EQ(kill(ranks[1], SIGCONT), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_EQ(kill(ranks[1], SIGUSR2), 0);  // one rank that is asked stops all
  const std::string outcome = output_of(job.finish(), 85);
  EXPECT_EQ(count_of(outcome, "stopped on request after step"), 1) << outcome;
  EXPECT_FALSE(fs::exists(path("slow/ranks")));
}

TEST_F(Endings, StopTogetherForLackOfTime) {
  const std::string expected = value_of(train(0, "in-time").output, "parameters: ");
  for (int step = 1; step < 4; ++step) {
    const std::string outcome = output_of(train(2, "late", "train.time_limit=0 --resume"), 85);
    EXPECT_EQ(count_of(outcome,
                       "stopped for lack of time (train.time_limit, or the end of the Slurm job) "
                       "after step " +
                           std::to_string(step)),
              1)
        << outcome;
  }
  EXPECT_EQ(value_of(output_of(train(3, "late", "--resume")), "parameters: "), expected);
}

}  // namespace
}  // namespace tpudist::test
