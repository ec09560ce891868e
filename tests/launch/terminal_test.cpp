// What stands on a terminal when a command has ended: lines of the log and of evaluations whole,
// each on a line of its own, and bars only where they ended.

#include <fstream>
#include <string>
#include <vector>

#include "tests/launch/run_program.hpp"
#include "tests/support/pseudo_terminal.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist::test {
namespace {

TerminalOutcome run_in_terminal(unsigned short columns, const std::string& arguments) {
  return run_on_terminal(columns, [&] {
    setenv("OMP_NUM_THREADS", "1", 1);
    const std::string command = program().string() + " " + arguments;
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  });
}

std::string screen_of(const TerminalOutcome& outcome) {
  std::string text;
  for (const std::string& line : outcome.lines) text += line + "\n";
  return text;
}

std::size_t count_containing(const TerminalOutcome& outcome, std::string_view part) {
  std::size_t count = 0;
  for (const std::string& line : outcome.lines) count += line.find(part) != std::string::npos;
  return count;
}

// Every line that holds `part` begins with `begin`.
void expect_whole_lines(const TerminalOutcome& outcome, std::string_view part,
                        const std::string& begin) {
  for (const std::string& line : outcome.lines) {
    if (line.find(part) == std::string::npos) continue;
    EXPECT_THAT(line, ContainsRegex("^" + begin)) << screen_of(outcome);
  }
}

TEST(Terminal, ATrainingKeepsItsBarBelowItsLines) {
  TPUDIST_NEEDS_TERMINAL();
  const TempDir folder;
  const std::string npz = (folder / "npz").string(), shards = (folder / "shards").string();
  const std::string wanted = " --collections layout:xla:random";
  ASSERT_EQ(run_in_terminal(40, "synth " + npz + " --preset tiny" + wanted).exit_code, 0);
  const TerminalOutcome converted = run_in_terminal(20, "convert " + npz + " " + shards);
  EXPECT_EQ(converted.exit_code, 0) << screen_of(converted);
  EXPECT_EQ(count_containing(converted, "#"), 0u) << screen_of(converted);  // no bar is left over

  std::ofstream(folder / "tiny.yaml")
      << tiny_experiment({"data.shards=" + shards, "train.evaluate_every=2", "ensemble.folds=none",
                          "ensemble.members=2", "ensemble.vary=[init]", "train.log_every=1",
                          "dist.threads=1"})
             .resolved_yaml;

  const TerminalOutcome trained =
      run_in_terminal(200, "train " + (folder / "tiny.yaml").string() + " --verbose --run-dir " +
                               (folder / "run").string());
  const std::string screen = screen_of(trained);
  ASSERT_EQ(trained.exit_code, 0) << screen;
  EXPECT_EQ(count_containing(trained, "Kendall tau"), 3u) << screen;
  EXPECT_EQ(count_containing(trained, "train: 6 steps in "), 1u) << screen;
  EXPECT_EQ(count_containing(trained, "[#"), 0u) << screen;
  expect_whole_lines(trained, "  loss ", "step ");
  expect_whole_lines(trained, "Kendall tau (", "step ");
  expect_whole_lines(trained, " debug ", "..:..:.. debug ");
  EXPECT_THAT(screen, HasSubstr("parameters: "));
}

// mpirun puts a pipe between rank 0 and the terminal.
TEST(Terminal, ATrainingUnderMpirunHasTheSameBar) {
  TPUDIST_NEEDS_TERMINAL();
  const TempDir folder;
  std::ofstream(folder / "tiny.yaml")
      << tiny_experiment({"train.log_every=1", "dist.threads=1"}).resolved_yaml;
  const std::string train = " train " + (folder / "tiny.yaml").string() + " --run-dir ";
  const auto ranks = [&](const std::string& options, const std::string& name) {
    return run_on_terminal(100, [&] {
      const std::string command =
          "exec env OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
          "OMPI_MCA_btl_vader_single_copy_mechanism=none timeout " TPUDIST_JOB_SECONDS
          " " TPUDIST_MPIRUN " --bind-to none --oversubscribe -np 2 " +
          options + program().string() + train + (folder / name).string();
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    });
  };
  const TerminalOutcome live = ranks("", "live");
  ASSERT_EQ(live.exit_code, 0) << screen_of(live);
  EXPECT_EQ(count_containing(live, "train: 6 steps in "), 1u) << screen_of(live);
  EXPECT_EQ(count_containing(live, "train: 0%"), 0u) << screen_of(live);  // a bar, which has gone
  expect_whole_lines(live, "  loss ", "step ");
  // Each line with a mark in front: no bar can stand there.
  const TerminalOutcome marked = ranks("--tag-output ", "marked");
  EXPECT_EQ(count_containing(marked, "train: 0%"), 1u) << screen_of(marked);
}

}  // namespace
}  // namespace tpudist::test
