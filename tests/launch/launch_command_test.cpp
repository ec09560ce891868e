#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/launch/ranks_case.hpp"

// Jobs that `launch` starts again: with scripts in place of mpirun, srun and ssh, and with real ranks.
namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

// A launcher that writes its arguments into `calls` and then runs `body` in the folder of the test.
class Relaunch : public FolderTest {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void script(const std::string& name, const std::string& body) const {
    const std::string file = path(name);
    std::ofstream(file) << "#!/bin/sh\ncd " << folder_.path().string() << "\necho \"" << name
                        << " $*\" >> calls\n"
                        << body << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  // `before` precedes the program, as of run_program.
  Outcome launch(const std::string& options, const std::string& before = "") const {
    return run_program(
        "launch " + options + " -- train none.yaml --run-dir " + path("run") + " 2>&1", before);
  }
  Outcome launch_with(const std::string& launcher, const std::string& options,
                      const std::string& before = "") const {
    return launch("--launcher '" + path(launcher) + "' --agent " + path("agent") + " " + options,
                  before);
  }

  std::vector<std::string> calls(const std::string& of) const {
    std::ifstream file(path("calls"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(of + " ")) lines.push_back(line.substr(of.size() + 1));
    return lines;
  }
};

constexpr const char* kNewCheckpoint =
    "mkdir -p run/checkpoints; n=$(ls run/checkpoints | wc -l); "
    "touch run/checkpoints/step-00000000$((n + 1)).h5\n";

TEST_F(Relaunch, GoesOnWhileCheckpointsAppearAndThenGivesUp) {
  script("mpirun", std::string("n=$(ls run/checkpoints 2> /dev/null | wc -l)\n[ $n -ge 3 ] || { ") +
                       kNewCheckpoint + "}\nexit 7");
  const std::string text = output_of(launch_with("mpirun", "--restarts 1 --patience 0.1"), 7);
  // Three starts with a new checkpoint, and two without.
  const std::vector<std::string> starts = calls("mpirun");
  ASSERT_EQ(starts.size(), 5u);
  EXPECT_THAT(starts[0], ContainsRegex("^-np 1 .*tpudist train none.yaml --run-dir .*run$"));
  for (std::size_t i = 1; i < starts.size(); ++i) EXPECT_THAT(starts[i], HasSubstr(" --resume"));
  EXPECT_THAT(text, AllOf(HasSubstr("restart 3 from step 3 on 1 rank;"),
                          HasSubstr("tpudist: error: launch gives up: 2 starts without a new "
                                    "checkpoint, the last exit code is 7; continue with --resume"),
                          HasSubstr("4 restarts in all")));
}

TEST_F(Relaunch, DoesNotRepeatWhatWouldEndTheSameWay) {
  for (const int code : {0, 2, 3, 85}) {
    script("mpirun", "exit " + std::to_string(code));
    output_of(launch_with("mpirun", ""), code);
  }
  EXPECT_EQ(calls("mpirun").size(), 4u);
  output_of(launch("--launcher " + path("no-mpirun")), 127);
  output_of(launch_with("mpirun", "--hosts a:0"), 2);
  output_of(launch_with("mpirun", "--hosts a:2 --ranks 3"), 2);
  output_of(launch_with("mpirun", "--hosts a:2 --min-ranks 3"), 2);
  EXPECT_THAT(output_of(run_program("launch -- train none.yaml 2>&1"), 2), HasSubstr("--run-dir"));
  output_of(run_program("launch -- evaluate runs/x --run-dir x 2>&1"), 2);
  EXPECT_EQ(calls("mpirun").size(), 4u);
}

TEST_F(Relaunch, LeavesOutHostsThatDoNotAnswer) {
  script("agent", "[ $1 != b ]");
  script("mpirun", std::string(kNewCheckpoint) + "[ $n = 0 ] && exit 137 || exit 0");
  const std::string text =
      output_of(launch_with("mpirun", "--hosts a:2,b:2,c:1 --ranks 4 --min-ranks 3"));
  const std::vector<std::string> starts = calls("mpirun");
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_THAT(starts[0], HasSubstr("-np 4 --host a:2,b:2,c:1 --mca plm_rsh_agent "));
  EXPECT_THAT(starts[1], HasSubstr("-np 3 --host a:2,c:1 "));
  EXPECT_THAT(text, AllOf(HasSubstr("with exit code 137; no answer from b\n"),
                          HasSubstr("restart 1 from step 1 on 3 ranks of a,c;")));
}

TEST_F(Relaunch, GivesUpWhenTooFewRanksAreLeft) {
  script("agent", "[ $1 != b ]");
  script("mpirun", "exit 137");
  EXPECT_THAT(output_of(launch_with("mpirun", "--hosts a:2,b:2 --min-ranks 3"), 86),
              HasSubstr("gives up: 2 ranks left, --min-ranks is 3"));
  EXPECT_EQ(calls("mpirun").size(), 1u);
}

// As when a cable is out: mpirun waits, does not obey SIGTERM, and its ranks are silent.
TEST_F(Relaunch, EndsAJobThatWaitsForALostHost) {
  script("agent", "[ $1 != b ]");
  script("mpirun", std::string(kNewCheckpoint) +
                       "[ $n = 0 ] || exit 0\ntrap '' TERM USR2\nsleep 600 & echo $! > rank\n"
                       "while :; do sleep 1; done");
  const std::string text = output_of(launch_with("mpirun", "--hosts a,b --patience 0.5"));
  EXPECT_THAT(text, HasSubstr("with exit code 86; no answer from b\n"));
  ASSERT_EQ(calls("mpirun").size(), 2u);
  std::ifstream file(path("rank"));
  pid_t rank = 0;
  ASSERT_TRUE(file >> rank);
  EXPECT_FALSE(fs::exists("/proc/" + std::to_string(rank))) << "a rank is left over";
}

TEST_F(Relaunch, AsksForACheckpointOnEverySignalToStop) {
  script("mpirun", "trap 'exit 85' USR2\necho ready\nwhile :; do sleep 0.05; done");
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    MpiProgram job("exec " + program().string() + " launch --launcher " + path("mpirun") +
                   " -- train none.yaml --run-dir " + path("run"));
    ASSERT_TRUE(job.wait_for("ready"));
    ASSERT_EQ(kill(job.process(), signal), 0);
    output_of(job.finish(), 85);
  }
}

TEST_F(Relaunch, TakesTheNodesOfASlurmJob) {
  script("scontrol", "[ $3 = 'n[1-3]' ] && printf 'n1\\nn2\\nn3\\n'");
  script("srun", "case $* in\n*--overlap*n2\\ true) exit 1;;\n*--overlap*) exit 0;;\nesac\n" +
                     std::string(kNewCheckpoint) + "[ $n = 0 ] && exit 137 || exit 0");
  const std::string text =
      output_of(launch("", "PATH=" + path("") +
                               ":$PATH SLURM_JOB_ID=1 SLURM_JOB_NODELIST='n[1-3]' "
                               "SLURM_TASKS_PER_NODE='2(x2),1' "));
  std::vector<std::string> starts = calls("srun");
  std::erase_if(starts, [](const auto& call) { return call.find("--overlap") != call.npos; });
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_THAT(starts[0], HasSubstr("--nodes=3 --ntasks=5 --nodelist=n1,n2,n3 "));
  EXPECT_THAT(starts[1], HasSubstr("--nodes=2 --ntasks=3 --nodelist=n1,n3 "));
  EXPECT_THAT(text, HasSubstr("no answer from n2\n"));
  EXPECT_THAT(output_of(launch("", "SLURM_JOB_ID=1 SLURM_TASKS_PER_NODE=2 "), 2),
              HasSubstr("give --hosts"));
}

class RelaunchedRanks : public Ranks {
 protected:
  static std::string launch_line(const std::string& run, const std::string& more) {
    return "exec env OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 "
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none " +
           program().string() +
           " launch --ranks 3 --launcher '" TPUDIST_MPIRUN " --bind-to none --oversubscribe' -- " +
           train_arguments(run, more);
  }
};

TEST_F(RelaunchedRanks, HaveTheBitsOfAnUndisturbedRun) {
  const std::string more = "train.steps=200 train.checkpoint_every=1";
  const std::string expected = value_of(output_of(train(0, "whole", more)), "parameters: ");
  MpiProgram job(launch_line("killed", more));
  ASSERT_TRUE(job.wait_for("step       5/"));
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 3u);
  ASSERT_EQ(kill(ranks[1], SIGKILL), 0);
  const std::string text = output_of(job.finish());
  EXPECT_THAT(text, ContainsRegex("restart 1 from step [0-9]+ on 3 ranks; .* of time lost"));
  EXPECT_EQ(value_of(text, "parameters: "), expected);
  EXPECT_EQ(count_of(content(path("killed/metrics.jsonl")), "\"kind\":\"step\""), 200);
}

TEST_F(RelaunchedRanks, AreNotStartedBesideAnotherTraining) {
  MpiProgram other("exec " + program().string() + " " +
                   train_arguments("shared", "train.steps=1000000"));
  ASSERT_TRUE(other.wait_for("step       2/"));
  EXPECT_THAT(output_of(MpiProgram(launch_line("shared", "--resume")).finish(), 1),
              HasSubstr("is in use by tpudist train"));
  ASSERT_EQ(kill(other.process(), SIGUSR2), 0);
  output_of(other.finish(), 85);
}

}  // namespace
}  // namespace tpudist::test
