#include "dist/health/watchdog.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "dist/health/rank_silence.hpp"
#include "dist/health/stop_signal.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What a watchdog printed when it ended its process, which it did not.
class Ending {
 public:
  Watchdog::Options options(double timeout, int rank = 0, int ranks = 1) {
    return {timeout, rank, ranks, [this](const std::string& report) {
              const std::lock_guard lock(mutex_);
              report_ = report;
              ++count_;
            }};
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  std::string report() {
    const std::lock_guard lock(mutex_);
    return report_;
  }
  // False when that does not come about within ten seconds.
  bool comes() {
    const auto limit = std::chrono::steady_clock::now() + 10s;
    while (count() == 0) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::string report_;
  int count_ = 0;
};

TEST(Watchdog, EndsAProcessThatFinishesNothing) {
  RankActivity activity;
  activity.enter("training", 3);
  Ending ending;
  Watchdog watchdog(activity, ending.options(0.4));
  watchdog.remember_checkpoint("run/step-2.h5");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(ending.comes());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
  EXPECT_THAT(ending.report(),
              AllOf(HasSubstr("nothing was finished for 0.4 s"), HasSubstr("rank 0 hangs"),
                    HasSubstr("training, step 3"), HasSubstr("run/step-2.h5")));
}

TEST(Watchdog, EndsItWithACodeOfItsOwn) {
  EXPECT_EXIT(
      {
        RankActivity activity;
        const Watchdog watchdog(activity, {.timeout = 0.2});
        std::this_thread::sleep_for(10s);
      },
      ::testing::ExitedWithCode(kHungExitCode), "nothing was finished for 0.2 s");
}

TEST(Watchdog, LeavesAProcessAloneThatGetsOn) {
  RankActivity activity;
  Ending ending;
  const Watchdog watchdog(activity, ending.options(0.5));
  for (int i = 0; i < 20; ++i) {
    activity.advance();
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(ending.count(), 0);
}

TEST(Watchdog, IsSwitchedOffByATimeoutOfZero) {
  const TempDir folder;
  RankActivity activity;
  Ending ending;
  Watchdog watchdog(activity, ending.options(0));
  watchdog.watch(folder / "ranks", 0, 2);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(ending.count(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "ranks"));
}

// Two ranks of a run in this process: one waits for the other.
TEST(Watchdog, WaitsWhileAnotherRankGetsOnAndNamesItWhenItDoesNot) {
  const TempDir folder;
  RankActivity waits, works;
  Ending of_waiting, of_working;
  Watchdog first(waits, of_waiting.options(1, 0, 2)), second(works, of_working.options(1, 1, 2));
  first.watch(folder / "ranks", 0, 2);
  second.watch(folder / "ranks", 1, 2);
  works.enter("training", 9);
  { const RankActivity::Collective both(&waits, "barrier", 0), there(&works, "barrier", 0); }
  const RankActivity::Collective call(&waits, "all_reduce", 4096);
  for (int i = 0; i < 40; ++i) {  // twice the timeout
    works.advance();
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(of_waiting.count() + of_working.count(), 0);
  ASSERT_TRUE(of_waiting.comes());
  EXPECT_THAT(of_waiting.report(),
              AllOf(HasSubstr("rank 0 waits in collective 2 (all_reduce), rank 1 has not arrived"),
                    HasSubstr("tpudist: rank 1 ("),
                    HasSubstr("training, step 9, after collective 1 (barrier")));
}

TEST(Watchdog, NeverEndsAPatientRankForItself) {
  RankActivity activity;
  Ending ending;
  const Watchdog watchdog(activity, ending.options(0.2));
  const RankActivity::Collective call(&activity, "wait_for_all", 0, /*patient=*/true);
  std::this_thread::sleep_for(800ms);
  EXPECT_EQ(ending.count(), 0);
}

TEST(Watchdog, SeesThatOthersWaitInVainForARankThatFailed) {
  const TempDir folder;
  RankActivity fails, waits;
  Ending ending;
  Watchdog first(fails, ending.options(60, 0, 2)), second(waits, ending.options(60, 1, 2));
  first.watch(folder / "ranks", 0, 2);
  second.watch(folder / "ranks", 1, 2);
  const auto in_vain_within = [&](std::chrono::milliseconds time) {
    const auto limit = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < limit) {
      if (first.others_wait_in_vain()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  };
  { const RankActivity::Collective both(&fails, "barrier", 0), there(&waits, "barrier", 0); }
  fails.fail();
  const RankActivity::Collective rest(&fails, "wait_for_all", 0, /*patient=*/true);
  {  // The other one comes to where this one waits.
    const RankActivity::Collective there(&waits, "wait_for_all", 0, /*patient=*/true);
    EXPECT_FALSE(in_vain_within(3s));
  }
  const RankActivity::Collective there(&waits, "all_reduce", 0);
  EXPECT_TRUE(in_vain_within(10s));
}

// A process that does nothing until it is killed.
pid_t start_sleeper() {
  const pid_t process = ::fork();
  while (process == 0) ::pause();
  return process;
}

RankStatus second_rank(pid_t process, const std::string& space) {
  RankStatus status;
  status.rank = 1;
  status.host = "here";
  status.process = process;
  status.space = space;
  status.phase = "training";
  status.call = "barrier";
  status.beat = 1;
  return status;
}

TEST(Watchdog, EndsARankThatWaitsForAProcessThatHasEnded) {
  const pid_t process = start_sleeper();
  const TempDir folder;
  RankFiles other(folder / "ranks", 1, 2);
  other.write(second_rank(process, process_space()));
  RankActivity activity;
  Ending ending;
  Watchdog watchdog(activity, ending.options(10, 0, 2));
  watchdog.watch(folder / "ranks", 0, 2);
  watchdog.remember_checkpoint("run/step-2.h5");
  const RankActivity::Collective call(&activity, "all_reduce", 4096);
  std::this_thread::sleep_for(3500ms);
  EXPECT_EQ(ending.count(), 0);
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(ending.comes());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_THAT(ending.report(),
              AllOf(HasSubstr("error: rank 1 ended without a word: rank 0 waits in collective 1 "
                              "(all_reduce) in vain"),
                    HasSubstr("tpudist: rank 1 (here, process "), HasSubstr("run/step-2.h5")));
}

TEST(Watchdog, EndsARankThatIsToStopAndWaitsForOneThatDoesNotAnswer) {
  const TempDir folder;
  RankFiles other(folder / "ranks", 1, 2);
  other.write(second_rank(1, "another machine"));
  RankActivity activity;
  Ending ending;
  Watchdog watchdog(activity, ending.options(60, 0, 2));
  watchdog.watch(folder / "ranks", 0, 2);
  const RankActivity::Collective call(&activity, "all_reduce", 4096);
  std::this_thread::sleep_for(8s);  // nobody asked it to stop
  EXPECT_EQ(ending.count(), 0);
  const StopSignal signal;
  ::raise(SIGUSR2);
  ASSERT_TRUE(ending.comes());
  EXPECT_THAT(ending.report(), HasSubstr("error: rank 1 did not answer when the job was to stop: "
                                         "rank 0 waits in collective 1 (all_reduce) in vain"));
}

TEST(LostRanks, AreThoseOfThisMachineThatAreGoneAndDidNotFail) {
  const pid_t process = start_sleeper();
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  const std::string here = process_space();
  ASSERT_FALSE(here.empty());
  std::vector<RankSilence> ranks(6);
  for (RankSilence& rank : ranks) {
    rank.known = true;
    rank.status = second_rank(process, here);
  }
  ranks[0].status.process = ::getpid();
  ranks[2].known = false;
  ranks[3].status.space = "another machine";
  ranks[4].status.failed = true;
  ranks[5].status.process = ::getppid();
  ranks[5].answers = false;
  EXPECT_EQ(ended_ranks(ranks, 0), std::vector{1});
  EXPECT_EQ(mute_ranks(ranks, 0), std::vector{5});
  ranks[0].status.space = ranks[1].status.space = "";
  EXPECT_EQ(ended_ranks(ranks, 0), std::vector<int>{}) << "nothing is known of processes here";
}

TEST(Watchdog, WatchesWithoutFilesWhereNoneCanBeWritten) {
  const TempDir folder;
  std::ofstream(folder / "ranks") << "a file where the folder should be";
  RankActivity activity;
  Ending ending;
  Watchdog watchdog(activity, ending.options(0.4, 1, 2));
  watchdog.watch(folder / "ranks", 1, 2);
  ASSERT_TRUE(ending.comes());
  EXPECT_THAT(ending.report(), HasSubstr("nothing is known"));
}

TEST(RankFiles, TellTheirStatuses) {
  const TempDir folder;
  RankFiles first(folder / "ranks", 0, 3), second(folder / "ranks", 1, 3);
  RankStatus status;
  status.rank = 4;
  status.phase = "a long phase of many words";
  status.beat = 7;
  second.write(status);
  status.phase = "short";
  status.beat = 8;
  second.write(status);
  const auto others = first.read_others();
  ASSERT_EQ(others.size(), 3u);
  ASSERT_TRUE(others[1]);
  EXPECT_EQ(to_text(*others[1]), to_text(status));
  EXPECT_FALSE(others[2]);
  // Half a text, a link and a FIFO are nothing.
  std::ofstream(folder / "ranks/1") << "beat 1\n";
  std::filesystem::create_symlink(folder / "ranks/0", folder / "ranks/2");
  EXPECT_FALSE(first.read_others()[1]);
  EXPECT_FALSE(first.read_others()[2]);
  std::filesystem::remove(folder / "ranks/2");
  ASSERT_EQ(mkfifo((folder / "ranks/2").c_str(), 0600), 0);
  EXPECT_FALSE(first.read_others()[2]);
}

}  // namespace
}  // namespace tpudist::test
