#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "core/file_system.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

// An experiment file in a folder of its own, in which the program is started.
class TrainCommand : public CommandTest {
 protected:
  TrainCommand() {
    fs::create_directory_symlink(tiny_shards(), folder_ / "data");
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
};

TEST_F(TrainCommand, TheRunFindsItsShardsFromAnywhereAndSaysWhichStepWasTaken) {
  output_of(call("train tiny.yaml --run-dir out/run"));
  EXPECT_THAT(read_text_file(folder_ / "out/run/config.yaml"),
              HasSubstr("shards: " + (folder_ / "data").string() + "\n"));
  const std::string scored = (folder_ / "out/run").string();
  EXPECT_THAT(output_of(run_program("evaluate " + scored + " --checkpoint best 2>&1")),
              AllOf(HasSubstr("run, step 4"), HasSubstr("optimistic")));
  EXPECT_THAT(output_of(run_program("evaluate " + scored + " --checkpoint 3 2>&1"), 2),
              HasSubstr("there are: 4, best"));
  EXPECT_THAT(output_of(run_program("evaluate " + scored + " --data none 2>&1"), 2),
              HasSubstr("--data FOLDER"));
}

TEST_F(TrainCommand, MissingShardsLeaveNoFolderBehind) {
  for (const char* dry : {"", " --dry-run"}) {
    EXPECT_THAT(output_of(call(std::string("train tiny.yaml") + dry, "TINY_DATA=typo "), 2),
                AllOf(HasSubstr((folder_ / "typo").string() + ": there is no such"),
                      HasSubstr("data.shards="), HasSubstr("TPUDIST_DATA")));
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(TrainCommand, ShowsSettingsThatAreNotAtTheirDefaultsAndWhatToDoNext) {
  EXPECT_THAT(output_of(call("train tiny.yaml train.steps=30 --run-dir \"a run's\"")),
              AllOf(ContainsRegex("train.steps +30\n"), Not(HasSubstr("optimizer.name")),
                    ContainsRegex("at their defaults: [0-9]+ more settings"),
                    HasSubstr("\n  tpudist evaluate 'a run'\\''s' "),
                    HasSubstr("\n  tpudist report 'a run'\\''s' "),
                    ContainsRegex("time left: about [0-9]")));
  EXPECT_THAT(call("train tiny.yaml --verbose --run-dir all").output,
              AllOf(HasSubstr("optimizer.name"), ContainsRegex("train.steps +4 \\*\n"),
                    Not(HasSubstr("more settings"))));
}

TEST_F(TrainCommand, ADryRunTimesStepsAndLeavesNothing) {
  EXPECT_THAT(output_of(call("train tiny.yaml --dry-run")),
              HasSubstr("time of 1 rank with 1 thread each, from "));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

// What the run would refuse, and nothing is written.
TEST_F(TrainCommand, ADryRunRefusesWhatTheRunRefuses) {
  ASSERT_EQ(call("train tiny.yaml --run-dir run").exit_code, 0);
  std::ofstream(folder_ / "file") << "in the way";
  for (const auto& [arguments, reason] : std::vector<std::pair<std::string, std::string>>{
           {"--run-dir run", "already holds a run"},
           {"--run-dir run --resume train.steps=8", "train.steps: 4 -> 8"},
           {"--run-dir run --resume optimizer.lr=0.5", "optimizer.lr: "},
           {"--run-dir file/run", "file/run"},
           {"--run-dir data", "neither empty nor the folder of a run"},
           {"train.init_from=nowhere", "train.init_from: there is no "}}) {
    for (const char* dry : {"", " --dry-run"}) {
      const Outcome refused = call("train tiny.yaml " + arguments + dry);
      EXPECT_THAT(refused.exit_code, ::testing::AnyOf(1, 2)) << arguments << dry << refused.output;
      EXPECT_THAT(refused.output, HasSubstr(reason)) << arguments << dry;
    }
  }
  EXPECT_THAT(call("train tiny.yaml --run-dir run --resume train.steps=8 --dry-run").output,
              HasSubstr("to train longer, add train.init_from=run\n"));
  EXPECT_THAT(output_of(call("train tiny.yaml --run-dir run --resume --dry-run")),
              HasSubstr("all 4 steps are done: only scores are left\n"));
}

TEST_F(TrainCommand, ADryRunGoesOnFromTheCheckpointThatItWouldResume) {
  const std::string more = " --run-dir run train.steps=40 train.checkpoint_every=10";
  output_of(call("train tiny.yaml train.time_limit=0" + more), 85);
  EXPECT_THAT(output_of(call("train tiny.yaml --resume --dry-run" + more)),
              ContainsRegex("training +39 steps of "));
  EXPECT_THAT(list_checkpoints(folder_ / "run/checkpoints"), SizeIs(1));
}

TEST_F(TrainCommand, SaysThatNothingIsScoredWithoutValidationGraphs) {
  EXPECT_THAT(
      output_of(call("synth npz --preset tiny --collections layout:xla:random --graphs 4,0,0")),
      HasSubstr("\nnext: tpudist convert npz SHARDS\n"));
  EXPECT_THAT(output_of(call("convert npz shards")), HasSubstr("\nnext: tpudist inspect shards\n"));
  EXPECT_THAT(
      output_of(call("train tiny.yaml train.evaluate_every=2 data.shards=shards --run-dir run")),
      AllOf(HasSubstr("train.evaluate_every: nothing is scored, since "),
            HasSubstr("\nnot scored: layout:xla:random has no graphs in its "),
            HasSubstr("tpudist evaluate run --split train ")));
  const std::string other = "its training graphs are not those that run was trained on";
  EXPECT_THAT(output_of(call("evaluate run --split train --data shards")), Not(HasSubstr(other)));
  EXPECT_THAT(output_of(call("evaluate run --split train --data data")), HasSubstr(other));
  EXPECT_THAT(
      output_of(call("train tiny.yaml train.time_limit=0 data.shards=shards --run-dir cut"), 85),
      Not(HasSubstr("not scored")));
}

// The loss of the only step is sound; no later step finds what it made of the weights.
TEST_F(TrainCommand, ALastStepThatBlowsUpFails) {
  EXPECT_THAT(output_of(call("train tiny.yaml train.steps=1 optimizer.lr=1e6 --run-dir run"), 1),
              HasSubstr("scores of each of the 1 were not finite; try a smaller"));
  EXPECT_FALSE(fs::exists(folder_ / "run/ranks"));
}

TEST_F(TrainCommand, NamesTheCommandThatStartsRanks) {
  EXPECT_THAT(output_of(call("train tiny.yaml -np 2 'name=a b'"), 2),
              HasSubstr("`mpirun -np 2 tpudist train tiny.yaml 'name=a b'`"));
}

TEST_F(TrainCommand, SaysThatTheWorkingFolderIsGone) {
  const std::string file = (folder_ / "tiny.yaml").string();
  for (const std::string& command : {"train " + file, std::string("verify shards")}) {
    EXPECT_THAT(output_of(call(command, "mkdir gone && cd gone && rmdir ../gone && "), 2),
                HasSubstr("the working folder is gone"));
  }
}

// `ulimit -f` counts blocks of 512 bytes: the data fit, the checkpoint does not.
TEST_F(TrainCommand, AFileThatGetsTooLargeIsAnError) {
  EXPECT_THAT(output_of(call("train tiny.yaml --run-dir run", "ulimit -f 40 && "), 1),
              HasSubstr("File too large"));
  EXPECT_TRUE(fs::is_empty(folder_ / "run/checkpoints"));
}

TEST_F(TrainCommand, LeavesMembersInRunsOfTheirOwnToTheSweep) {
  EXPECT_THAT(output_of(call("train tiny.yaml ensemble.placement=split"), 2),
              AllOf(HasSubstr("ensemble.placement: split"), HasSubstr("tpudist sweep run")));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(TrainCommand, TheNameIsOneFolder) {
  for (const char* name : {"../../x", "''"}) {
    EXPECT_THAT(output_of(call(std::string("config show tiny.yaml \"name=") + name + "\""), 2),
                HasSubstr("\"name\" names the run's folder"))
        << name;
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
  const std::string tpudist = program().string(), run_dir = (folder_ / "run").string();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::dup2(pipe[1], STDERR_FILENO);
    ::close(pipe[0]);
    ::close(pipe[1]);
    if (::chdir(folder_.path().c_str()) != 0) ::_exit(1);
    ::unsetenv("OMPI_COMM_WORLD_SIZE");
    ::execl(tpudist.c_str(), tpudist.c_str(), "train", "tiny.yaml", "train.steps=100000000",
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
  EXPECT_THAT(output_of(call("train tiny.yaml --run-dir run --resume"), 2),
              HasSubstr("train.steps: 100000000 -> 4"));
}

}  // namespace
}  // namespace tpudist::test
