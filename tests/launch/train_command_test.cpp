#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/train/tiny_data.hpp"
#include "train/state/checkpoint_folder.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using tpudist::test::Outcome;
using tpudist::test::TempDir;

namespace fs = std::filesystem;

// An experiment file in a folder of its own, in which the program is started.
class TrainCommand : public ::testing::Test {
 protected:
  TrainCommand() {
    fs::create_directory_symlink(test::tiny_shards(), folder_ / "data");
    std::ofstream(folder_ / "tiny.yaml") << R"(
name: tiny
data: {shards: '${env:TINY_DATA,data}', collection: layout:xla:random}
batch: {slates: 2, configs: 4}
model: {preset: latenciaga_xla}
loss: {list_mle: {}}
train: {steps: 4, log_every: 1, last_evaluation: sampled, evaluate_rows: 4}
dist: {threads: 1, device: cpu}
)";
  }

  Outcome run(const std::string& arguments, const std::string& variables = "") const {
    return test::run_program(arguments + " 2>&1",
                             "cd " + folder_.path().string() + " && " + variables + " ");
  }

  const TempDir folder_;
};

TEST_F(TrainCommand, TheRunFindsItsShardsFromAnywhereAndSaysWhichStepWasTaken) {
  const Outcome trained = run("train tiny.yaml --run-dir out/run");
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  EXPECT_THAT(read_text_file(folder_ / "out/run/config.yaml"),
              HasSubstr("shards: " + (folder_ / "data").string() + "\n"));
  const std::string scored = (folder_ / "out/run").string();
  const Outcome best = test::run_program("evaluate " + scored + " --checkpoint best 2>&1");
  EXPECT_EQ(best.exit_code, 0) << best.output;
  EXPECT_THAT(best.output, HasSubstr("run, step 4"));
  EXPECT_THAT(best.output, HasSubstr("optimistic"));
  const Outcome none = test::run_program("evaluate " + scored + " --checkpoint 3 2>&1");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.output, HasSubstr("there are: 4, best"));
  const Outcome moved = test::run_program("evaluate " + scored + " --data none 2>&1");
  EXPECT_EQ(moved.exit_code, 2);
  EXPECT_THAT(moved.output, HasSubstr("--data FOLDER"));
}

TEST_F(TrainCommand, MissingShardsLeaveNoFolderBehind) {
  for (const char* dry : {"", " --dry-run"}) {
    const Outcome missing = run(std::string("train tiny.yaml") + dry, "TINY_DATA=typo");
    EXPECT_EQ(missing.exit_code, 2) << missing.output;
    EXPECT_THAT(missing.output, HasSubstr((folder_ / "typo").string() + ": there is no such"));
    EXPECT_THAT(missing.output, HasSubstr("data.shards="));
    EXPECT_THAT(missing.output, HasSubstr("TPUDIST_DATA"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(TrainCommand, ShowsSettingsThatAreNotAtTheirDefaultsAndWhatToDoNext) {
  const Outcome trained = run("train tiny.yaml train.steps=30 --run-dir \"a run's\"");
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  EXPECT_THAT(trained.output, ::testing::ContainsRegex("train.steps +30\n"));
  EXPECT_THAT(trained.output, Not(HasSubstr("optimizer.name")));
  EXPECT_THAT(trained.output,
              ::testing::ContainsRegex("[0-9]+ more settings are at their defaults"));
  EXPECT_THAT(trained.output, HasSubstr("\n  tpudist evaluate 'a run'\\''s' "));
  EXPECT_THAT(trained.output, HasSubstr("\n  tpudist report 'a run'\\''s' "));
  EXPECT_THAT(trained.output, ::testing::ContainsRegex("time left: about [0-9]"));
  const Outcome all = run("train tiny.yaml --verbose --run-dir all");
  EXPECT_THAT(all.output, HasSubstr("optimizer.name"));
  EXPECT_THAT(all.output, ::testing::ContainsRegex("train.steps +4 \\*\n"));
  EXPECT_THAT(all.output, Not(HasSubstr("more settings")));
}

TEST_F(TrainCommand, ADryRunTimesStepsAndLeavesNothing) {
  const Outcome dry = run("train tiny.yaml --dry-run");
  ASSERT_EQ(dry.exit_code, 0) << dry.output;
  EXPECT_THAT(dry.output, HasSubstr("time of 1 rank with 1 thread each, from "));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(TrainCommand, LeavesMembersInRunsOfTheirOwnToTheSweep) {
  const Outcome refused = run("train tiny.yaml ensemble.placement=split");
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("ensemble.placement: split"));
  EXPECT_THAT(refused.output, HasSubstr("tpudist sweep run"));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(TrainCommand, TheNameIsOneFolder) {
  for (const char* name : {"../../x", "''"}) {
    const Outcome odd = run(std::string("config show tiny.yaml \"name=") + name + "\"");
    EXPECT_EQ(odd.exit_code, 2) << name;
    EXPECT_THAT(odd.output, HasSubstr("\"name\" names the run's folder")) << name;
  }
}

// Reads the standard error of the program until a line holds `text`.
bool read_until(int descriptor, const std::string& text) {
  std::string seen;
  char byte = 0;
  while (::read(descriptor, &byte, 1) == 1) {
    seen += byte;
    if (byte == '\n' && seen.find(text) != std::string::npos) return true;
    if (byte == '\n') seen.clear();
  }
  return false;
}

TEST_F(TrainCommand, AnInterruptWritesACheckpointAndTheRunGoesOn) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const std::string program = test::program().string(), run_dir = (folder_ / "run").string();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::dup2(pipe[1], STDERR_FILENO);
    ::close(pipe[0]);
    ::close(pipe[1]);
    if (::chdir(folder_.path().c_str()) != 0) ::_exit(1);
    ::unsetenv("OMPI_COMM_WORLD_SIZE");
    ::execl(program.c_str(), program.c_str(), "train", "tiny.yaml", "train.steps=100000000",
            "--run-dir", run_dir.c_str(), nullptr);
    ::_exit(1);
  }
  ::close(pipe[1]);
  EXPECT_TRUE(read_until(pipe[0], "step "));
  ::kill(child, SIGINT);
  EXPECT_TRUE(read_until(pipe[0], "interrupt again to end at once"));
  while (read_until(pipe[0], "\n")) {
  }
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 85);
  EXPECT_THAT(list_checkpoints(folder_ / "run/checkpoints"), SizeIs(1));
  const Outcome refused = run("train tiny.yaml --run-dir run --resume");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("train.steps: 100000000 -> 4"));
}

}  // namespace
}  // namespace tpudist
