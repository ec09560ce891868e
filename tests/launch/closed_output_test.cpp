// Standard output and standard error that nobody reads, that are closed or full: jobs go on to
// their end, and what they write into files is what it always is.

#include <filesystem>
#include <string>
#include <vector>

#include "tests/launch/ranks_case.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

class ClosedOutput : public Ranks {
 protected:
  // Of a run that is there, by its newest checkpoint.
  static std::string parameters_of(const std::string& run) {
    return value_of(output_of(run_program("weights export " + path(run) + " " +
                                          path(run + ".safetensors") + " --quiet 2>&1")),
                    "parameters: ");
  }

  // As if nothing had happened.
  static void expect_whole_run(const std::string& run) {
    EXPECT_TRUE(fs::exists(path(run + "/checkpoints/step-000000004.h5")));
    EXPECT_TRUE(fs::exists(path(run + "/scores.json")));
    EXPECT_EQ(count_of(content(path(run + "/metrics.jsonl")), "\"kind\":\"step\""), 4);
    EXPECT_EQ(parameters_of(run), parameters_of("one"));
  }

  // `redirection`: of the whole job, as the shell writes it.
  static MpiProgram start(int ranks, const std::string& arguments,
                          const std::string& redirection = "") {
    if (ranks == 0) return MpiProgram("exec " + program().string() + " " + arguments + redirection);
    std::vector<RankStart> starts(static_cast<std::size_t>(ranks), {arguments});
    starts.back().arguments += redirection;
    return MpiProgram(starts);
  }
};

TEST_F(ClosedOutput, ThatNobodyReadsAnyMoreDoesNotEndTraining) {
  for (const int ranks : {0, 1, 2}) {
    const std::string run = "left-" + std::to_string(ranks);
    // Alone with both streams in one pipe, as with `2>&1 | head -1`; under mpirun with results
    // only, since mpirun itself gives up after ten lines that it cannot hand on.
    MpiProgram job =
        start(ranks, train_arguments(run), (ranks == 0 ? " 2>&1" : " 2>" + path("errors")));
    ASSERT_TRUE(job.wait_for("name"));
    job.close_output();
    EXPECT_EQ(job.finish().exit_code, 0) << ranks;
    expect_whole_run(run);
  }
}

TEST_F(ClosedOutput, OfMpirunLeavesARunToGoOnWith) {
  const std::string more = "train.steps=60";
  const std::string expected = value_of(train(0, "long", more).output, "parameters: ");
  ASSERT_EQ(expected.size(), 16u);
  MpiProgram job = start(2, train_arguments("cut-off", more));
  ASSERT_TRUE(job.wait_for("step       3/"));
  job.close_output();
  const int exit_code = job.finish().exit_code;
  EXPECT_NE(exit_code, 124) << "the job went on";
  EXPECT_NE(exit_code, 0) << "mpirun outlives a reader that leaves: mend docs/command-line.md";
  Outcome resumed = train(0, "cut-off", more + " --resume");
  // The ranks outlive their mpirun until they see that it is gone.
  while (resumed.output.find("is in use by") != std::string::npos)
    resumed = train(0, "cut-off", more + " --resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(value_of(resumed.output, "parameters: "), expected);
}

TEST_F(ClosedOutput, ThatIsClosedFromTheStartOrFullIsToldAtTheEnd) {
  for (const std::string redirection : {">&-", ">/dev/full"}) {
    const bool full = redirection == ">/dev/full";
    for (const int ranks : {0, 2}) {
      const std::string run = (full ? "full-" : "closed-") + std::to_string(ranks);
      const Outcome outcome = start(ranks, train_arguments(run), " 2>&1 " + redirection).finish();
      if (ranks == 0) {
        EXPECT_THAT(output_of(outcome, 1),
                    HasSubstr(std::string("tpudist: error: cannot write to standard output") +
                              (full ? ": No space left on device" : "")));
      }
      expect_whole_run(run);
    }
  }
}

// With neither of them the exit code is all that is left.
TEST_F(ClosedOutput, ErrorsThatNobodyReadsKeepTheirExitCode) {
  const std::string wrong = train_arguments("wrong", "batch.slats=3");
  EXPECT_EQ(start(0, wrong, " >/dev/full 2>/dev/full").finish().exit_code, 2);
  EXPECT_EQ(start(0, wrong, " >&- 2>&-").finish().exit_code, 2);
  const std::string missing = train_arguments("missing", "data.shards=" + path("none"));
  EXPECT_EQ(start(0, missing, " >/dev/full 2>/dev/full").finish().exit_code, 2);
  EXPECT_EQ(start(2, missing, " >/dev/full 2>/dev/full").finish().exit_code, 2);
}

TEST_F(ClosedOutput, OfOtherCommandsLeavesTheirFilesWhole) {
  const std::string predict = "predict " + path("one") + " --csv " + path("rows.csv");
  const std::string printed = run_program(predict + " 2>/dev/null").output;
  const std::string rows = content(path("rows.csv"));
  ASSERT_GT(rows.size(), 100u);
  for (const char* ending : {" 2>&1 >/dev/full", " 2>&1 >&-"}) {
    const std::string evaluated =
        output_of(start(0, "evaluate " + path("one") + ending).finish(), 1);
    EXPECT_EQ(count_of(evaluated, "tpudist: error: cannot write to standard output"), 1)
        << evaluated;
    fs::remove(path("rows.csv"));
    const Outcome predicted = start(0, predict, ending).finish();
    EXPECT_EQ(predicted.exit_code, printed.empty() ? 0 : 1) << predicted.output;
    EXPECT_EQ(content(path("rows.csv")), rows);
  }
  for (const int ranks : {0, 1, 2}) {
    fs::remove(path("rows.csv"));
    MpiProgram job = start(ranks, predict, (ranks == 0 ? " 2>&1" : ""));
    job.close_output();
    EXPECT_EQ(job.finish().exit_code, 0) << ranks;
    EXPECT_EQ(content(path("rows.csv")), rows);
  }
  MpiProgram job = start(0, "convert " + path("npz-shards") + " " + path("again") + " 2>&1");
  job.close_output();
  EXPECT_EQ(job.finish().exit_code, 0);
  EXPECT_EQ(
      run_program("verify " + path("again") + " --npz " + path("npz-shards") + " 2>&1").exit_code,
      0);
}

}  // namespace
}  // namespace tpudist::test
