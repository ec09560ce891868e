#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/launch/mpi_program.hpp"
#include "tests/launch/sweep/sweep_case.hpp"

// `tpudist sweep` on several ranks of this machine: groups, claims, ranks that die.
namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

class SweepRanks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new SweepCase;
    folder_->write("sweep.yaml",
                   "name: s\nexperiments: tiny.yaml\n"
                   "set: {train: {steps: 6, checkpoint_every: 2, log_every: 1}}\n"
                   "sweep: {seeds: 2, folds: 2}\nplacement: split\n");
    output_of(sweep("run sweep.yaml --dir " + path("alone")));
    expected_ = collect("alone");
    ASSERT_EQ(expected_.exit_code, 0);
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string path(const std::string& name) { return folder_->path(name).string(); }
  static void replace_by_file(const std::string& folder) {
    fs::remove_all(folder);
    std::ofstream(folder) << "in the way";
  }
  static Outcome sweep(const std::string& arguments) {
    return run_program("sweep " + arguments + " 2>&1", "cd " + path("") + " && ");
  }
  static Outcome collect(const std::string& folder) {
    return sweep("collect --quiet " + path(folder));
  }
  static std::string arguments(const std::string& sweep, const std::string& more = "") {
    return "sweep run " + path("sweep.yaml") + " --dir " + path(sweep) + " " + more;
  }

  static inline SweepCase* folder_ = nullptr;
  static inline Outcome expected_;
};

TEST_F(SweepRanks, AFileOfAnExpandedSweepNamesItsFolder) {
  EXPECT_THAT(
      sweep("collect sweep.yaml").output,
      HasSubstr("sweep.yaml is a sweep file: it was not expanded into sweeps/s; give the "));
  sweep("expand sweep.yaml");
  EXPECT_THAT(output_of(sweep("collect sweep.yaml"), 2),
              HasSubstr("give the folder that it was expanded into, sweeps/s"));
}

TEST_F(SweepRanks, GroupsOfUnequalSizeTrainTheSameRuns) {
  EXPECT_THAT(output_of(run_ranks(3, arguments("groups", "--groups 2,1"))),
              HasSubstr("4 runs finished here, 0 failed"));
  EXPECT_EQ(collect("groups").output, expected_.output);
}

TEST_F(SweepRanks, TwoJobsShareOneSweep) {
  MpiProgram first({{arguments("shared")}, {arguments("shared")}});
  ASSERT_TRUE(first.wait_for("begins"));
  const Outcome second = run_program(arguments("shared", "2>&1"));
  const Outcome ended = first.finish();
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  // What one trained, the other did not.
  EXPECT_EQ(collect("shared").output, expected_.output);
}

TEST_F(SweepRanks, AKilledJobIsTakenUpAgain) {
  MpiProgram program({{arguments("killed", "--groups 1")}, {arguments("killed", "--groups 1")}});
  ASSERT_TRUE(program.wait_for("step       3/6"));
  ::kill(program.ranks().at(1), SIGKILL);
  EXPECT_NE(program.finish().exit_code, 0);
  output_of(run_ranks(2, arguments("killed", "--groups 1")));
  EXPECT_EQ(collect("killed").output, expected_.output);
}

// A full disk, say: the run goes on from its last checkpoint once there is room.
TEST_F(SweepRanks, AResultThatCannotBeWrittenEndsTheGroupOnAllRanks) {
  output_of(sweep("expand sweep.yaml --dir full"));
  replace_by_file(path("full") + "/results");
  EXPECT_THAT(output_of(run_ranks(2, "sweep run " + path("full")), 1),
              AllOf(HasSubstr("full/results/"), HasSubstr("0 runs finished here")));
  fs::remove(path("full") + "/results");
  EXPECT_EQ(run_ranks(2, "sweep run " + path("full")).exit_code, 0);
  EXPECT_EQ(collect("full").output, expected_.output);
}

TEST_F(SweepRanks, RefusesWhatItWouldIgnore) {
  output_of(sweep("expand sweep.yaml --dir there"));
  EXPECT_THAT(output_of(sweep("run there --dir other"), 2),
              HasSubstr("--dir and key=value pairs belong to"));
  EXPECT_THAT(output_of(sweep("run there --index 0 --groups 1"), 2), HasSubstr("--groups"));
}

// Only the first rank writes: what it cannot write costs lines of the log, and no step.
TEST_F(SweepRanks, ALogThatCannotBeWrittenEndsNothing) {
  folder_->write("endless.yaml",
                 "name: e\nexperiments: tiny.yaml\nset: {train: {steps: 1000000, log_every: "
                 "1}}\nsweep: {seeds: 1}\n");
  const std::string arguments = "sweep run " + path("endless.yaml") + " --dir " + path("endless");
  MpiProgram program({{arguments}, {arguments}});
  ASSERT_TRUE(program.wait_for("step       3/"));
  fs::path run;
  for (const auto& entry : fs::directory_iterator(path("endless") + "/runs")) run = entry.path();
  replace_by_folder(run / "metrics.jsonl");
  ASSERT_TRUE(program.wait_for("metrics.jsonl: Is a directory; training goes on"));
  ::kill(program.ranks().at(1), SIGUSR2);
  output_of(program.finish(), 85);
}

// A terminal that is closed asks what runs in it to stop.
TEST_F(SweepRanks, AClosedTerminalLosesNothing) {
  MpiProgram program({{arguments("closed")}, {arguments("closed")}});
  ASSERT_TRUE(program.wait_for("step       3/6"));
  for (const pid_t rank : program.ranks()) ::kill(rank, SIGHUP);
  EXPECT_EQ(program.finish().exit_code, 85);
  output_of(run_ranks(2, arguments("closed")));
  EXPECT_EQ(collect("closed").output, expected_.output);
}

TEST_F(SweepRanks, AnEnsembleTakesTheRunsOfASweep) {
  const std::string csv = path("sweep.csv"), runs_csv = path("runs.csv");
  output_of(run_ranks(2, "ensemble " + path("alone") + " --split valid --csv " + csv));
  EXPECT_EQ(run_program("ensemble " + path("alone") + "/runs/* --split valid --csv " + runs_csv)
                .exit_code,
            0);
  EXPECT_GT(fs::file_size(csv), 100u);
  EXPECT_EQ(fs::file_size(csv), fs::file_size(runs_csv));
}

TEST_F(SweepRanks, RanksWithDifferentSweepsAreRefused) {
  EXPECT_THAT(
      output_of(run_ranks({{arguments("here")},
                           {"sweep run " + path("sweep.yaml") + " --dir " + path("there")}}),
                2),
      HasSubstr("--dir: "));
}

// Each command ends with the one that comes next.
TEST_F(SweepRanks, MissingShardsAreSaidOnceAndNoRunFails) {
  const std::string file = path("nodata.yaml"), dir = path("nodata"), shards = path("none");
  folder_->write("nodata.yaml", "name: n\nexperiments: tiny.yaml\nset: {data.shards: '" + shards +
                                    "'}\nsweep: {seeds: 2}\n");
  const std::string fault = shards + ": there is no such folder of shards; `tpudist convert NPZ " +
                            shards + "` makes them, or";
  const std::string expand = "expand " + file + " --dir " + dir;
  EXPECT_THAT(output_of(sweep(expand)), AllOf(HasSubstr(fault), Not(HasSubstr("next:"))));
  for (const std::string& run : {"sweep run " + dir, "sweep run " + file + " --dir " + dir}) {
    const std::string said = output_of(run_ranks(2, run + " --groups 1"), 3);
    EXPECT_NE(said.find(fault), std::string::npos) << said;
    EXPECT_EQ(said.find(fault), said.rfind(fault)) << said;
  }
  EXPECT_THAT(sweep("status " + dir).output, AllOf(HasSubstr("0 of 2 runs have finished"),
                                                   HasSubstr(fault), Not(HasSubstr("next:"))));
  EXPECT_THAT(run_program("sweep collect " + dir).output,
              AllOf(HasSubstr("no run has ended yet"), HasSubstr(fault)));
  fs::copy(tiny_shards(), shards, fs::copy_options::recursive);
  EXPECT_THAT(sweep(expand).output,
              AllOf(HasSubstr("list: 2 runs, from index 0\n"),
                    HasSubstr("\nnext: tpudist sweep run " + dir + " (Slurm: ")));
  EXPECT_THAT(output_of(sweep("run " + dir)),
              HasSubstr("\nnext: tpudist sweep collect " + dir + "\n"));
  EXPECT_THAT(sweep("collect " + dir).output, HasSubstr("\nnext: tpudist report " + dir + "\n"));
}

// As `sweep expand` does.
TEST_F(SweepRanks, AMistakeInASweepFileHasItsPlace) {
  folder_->write("wrong.yaml", "name: w\nexperiments: tiny.yaml\nset: {train.stpes: 20}\n");
  EXPECT_THAT(output_of(sweep("run wrong.yaml"), 2),
              AllOf(HasSubstr("wrong.yaml:3:"), Not(HasSubstr("command line"))));
}

}  // namespace
}  // namespace tpudist::test
