// What the program writes where: results on standard output, all else on standard error. Completions
// of shells, as the built program writes them.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "launch/program/output.hpp"
#include "tests/launch/run_program.hpp"

namespace tpudist::test {
namespace {

using ::testing::MatchesRegex;

const std::string kShow = "config show " + (source_folder() / "experiments/nlp.yaml").string();

TEST(StandardOutput, ThatCannotBeWrittenIsAnError) {
  for (const std::string& command : {kShow, std::string("--help"), std::string("synth --help")}) {
    EXPECT_EQ(output_of(run_program("2>&1 >/dev/full " + command), 1),
              "tpudist: error: cannot write to standard output: No space left on device\n")
        << command;
    const Outcome closed = run_program("2>&1 >&- " + command);
    EXPECT_EQ(closed.exit_code, 1) << command;
    EXPECT_THAT(closed.output, HasSubstr("cannot write to standard output"));
  }
}

// A script reads the names that a terminal must not obey.
TEST(StandardOutput, OfJsonKeepsOddNames) {
  ::testing::internal::CaptureStdout();
  print_json(nlohmann::json("a\x1b \xe2\x80\xae \xff"));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "\"a\\u001b \\u202e \\ufffd\"\n");
}

// The reader's end is closed before the program starts.
TEST(StandardOutput, ThatNobodyReadsEndsQuietly) {
  const TempDir folder;
  const std::string errors = (folder / "errors").string();
  const std::string script = "mkfifo " + (folder / "fifo").string() + "; exec 3<>" +
                             (folder / "fifo").string() + " 4>" + (folder / "fifo").string() +
                             " 3<&-; " + program().string() + " " + kShow + " >&4 2>" + errors;
  const int status = std::system(("/bin/sh -c '" + script + "'").c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_text_file(errors), "");
}

// A closed standard output must not become the shard that is opened next.
TEST(StandardOutput, ThatIsClosedDoesNotGetIntoFiles) {
  const TempDir folder;
  const std::string npz = (folder / "npz").string(), shards = (folder / "shards").string();
  run_program("synth " + npz + " --preset tiny --collections tile:xla 2>&1");
  EXPECT_EQ(run_program("convert " + npz + " " + shards + " 2>&1 >&-").exit_code, 1);
  output_of(run_program("verify " + shards + " --npz " + npz + " 2>&1"));
}

TEST(Verbosity, QuietLeavesResultsAndVerboseNamesFiles) {
  const TempDir folder;
  const std::string npz = (folder / "npz").string(), shards = (folder / "shards").string();
  const std::string synth = " synth " + npz + " --preset tiny --collections tile:xla ";
  EXPECT_EQ(run_program(synth + "--quiet 2>&1 >/dev/null").output, "");
  EXPECT_THAT(run_program(synth + "--quiet").output, HasSubstr("tile/xla/train"));
  const std::string convert = "convert " + npz + " " + shards;
  EXPECT_THAT(run_program(convert + " --verbose 2>&1 >/dev/null").output,
              HasSubstr(" debug converted " + npz + "/tile/xla/train/"));
  EXPECT_THAT(run_program(convert + " 2>&1 >/dev/null").output,
              AllOf(Not(HasSubstr("debug")), ContainsRegex("convert tile:xla: [0-9.]+ KiB in ")));
  EXPECT_EQ(run_program(kShow + " --quiet --verbose 2>&1").exit_code, 2);
}

TEST(Verbosity, QuietTrainingPrintsItsOutcomeAlone) {
  const TempDir folder;
  const std::string npz = (folder / "npz").string(), shards = (folder / "shards").string();
  run_program("synth " + npz + " --preset tiny --collections layout:xla:random --quiet");
  run_program("convert " + npz + " " + shards + " --quiet");
  write_file_atomically(folder / "tiny.yaml", "name: tiny\ndata: {shards: '" + shards +
                                                  "', collection: layout:xla:random}\n"
                                                  "model: {preset: latenciaga_xla}\n"
                                                  "loss: {list_mle: {}}\n"
                                                  "train: {steps: 1, last_evaluation: none}\n"
                                                  "dist: {threads: 1, device: cpu}\n");
  const std::string train =
      "train " + (folder / "tiny.yaml").string() + " --run-dir " + (folder / "run").string();
  EXPECT_THAT(run_program(train + " --dry-run").output, HasSubstr("train.steps"));
  EXPECT_THAT(output_of(run_program(train + " --quiet 2>&1")),
              MatchesRegex("\nnot scored [^\n]*\n\nsteps: 1\n(.*\n)*parameters: [0-9a-f]+\n"));
}

TEST(Verbosity, QuietStillNamesBadFiles) {
  const TempDir folder;
  std::filesystem::create_directories(folder / "npz/tile/xla/train");
  write_file_atomically(folder / "npz/tile/xla/train/bad.npz", "no zip file");
  EXPECT_THAT(output_of(run_program("convert " + (folder / "npz").string() + " " +
                                    (folder / "shards").string() + " --quiet 2>&1 >/dev/null"),
                        3),
              MatchesRegex("..:..:.. error [^\n]*bad.npz[^\n]*\n"
                           "tpudist: error: 1 bad NPZ file[^\n]*\n"));
}

// What bash offers for the last of these words, by the completion in `script`.
std::string completed(const std::string& script, const std::string& words) {
  const TempDir folder;
  write_file_atomically(folder / "script", script);
  write_file_atomically(folder / "ask",
                        "COMP_LINE='" + words +
                            "'\nCOMP_POINT=${#COMP_LINE} COMP_WORDBREAKS=$' \\t=:'\n"
                            ". $1/script\n_tpudist $2/tpudist\n"
                            "echo \"${COMPREPLY[*]}\" > $1/answer\n");
  EXPECT_EQ(
      std::system(("cd " + source_folder().string() + " && bash " + (folder / "ask").string() +
                   " " + folder.path().string() + " " + program().parent_path().string())
                      .c_str()),
      0);
  return read_text_file(folder / "answer");
}

TEST(Completion, OfBashKnowsCommandsOptionsValuesAndSettings) {
  const std::string script = run_program("completion bash").output;
  EXPECT_EQ(completed(script, "tpudist tra"), "train\n");
  EXPECT_THAT(completed(script, "tpudist "), HasSubstr("sweep"));
  EXPECT_EQ(completed(script, "tpudist train x.yaml --dr"), "--dry-run\n");
  EXPECT_EQ(completed(script, "tpudist sweep ex"), "expand\n");
  EXPECT_EQ(completed(script, "tpudist sweep run x.yaml --gr"), "--groups\n");
  EXPECT_EQ(completed(script, "tpudist evaluate runs/a --split va"), "valid\n");
  EXPECT_EQ(completed(script, "tpudist completion f"), "fish\n");
  EXPECT_EQ(completed(script, "tpudist synth npz --preset hu"), "huge\n");
  EXPECT_EQ(completed(script, "tpudist evaluate runs/a --checkpoint "), "best last\n");
  EXPECT_EQ(completed(script, "tpudist rank m.pb --configs nei"), "neighbours\n");
  EXPECT_EQ(completed(script, "tpudist sea"), "search\n");
  EXPECT_EQ(completed(script, "tpudist search m.pb --apply te"), "text\n");
  EXPECT_EQ(completed(script, "tpudist sweep expand fol"), "folds\n");
  EXPECT_EQ(completed(script, "tpudist verify fi"), "\n");  // files, by bash itself
  EXPECT_EQ(completed(script, "tpudist train demo_fa"), "demo_fast\n");
  EXPECT_EQ(completed(script, "tpudist config show latenciaga_nlp_d"), "latenciaga_nlp_diffmat\n");
  EXPECT_EQ(completed(script, "tpudist train nlp train.st"), "train.steps=\n");
  EXPECT_EQ(completed(script, "tpudist train nlp --resume dist.device=c"), "cpu cuda\n");
  EXPECT_EQ(completed(script, "tpudist train nlp data.collection=layout:nlp:r"), "random\n");
  EXPECT_EQ(completed(script, "tpudist inspect x --collection tile:"), "xla\n");
  EXPECT_EQ(completed(script, "tpudist sweep run folds sweep.se"), "sweep.seeds=\n");
  EXPECT_EQ(completed(script, "tpudist evaluate run --split va"),
            "valid\n");                                               // "run" as the argument
  EXPECT_EQ(completed(script, "tpudist train x --run-dir -"), "\n");  // a value, no option
  EXPECT_EQ(completed(script, "tpudist convert a b --collections tile:xla layout:nlp:r"),
            "random\n");
  EXPECT_EQ(completed(script, "tpudist convert --collections tile:xla --on-er"), "--on-error\n");
}

// Without the program that loads LibTorch, which takes half a second.
TEST(Completion, NeedsTheSmallProgramAlone) {
  const TempDir folder;
  std::filesystem::copy_file(program(), folder / "tpudist");
  const auto said = [&](const std::string& line) {
    const std::string command = (folder / "tpudist").string() + " completion words '" + line +
                                "' > " + (folder / "said").string();
    EXPECT_EQ(std::system(command.c_str()), 0) << line;
    return read_text_file(folder / "said");
  };
  EXPECT_EQ(said("tpudist tra"), "train\tTrain an ensemble as an experiment file says\n");
  EXPECT_EQ(said("tpudist sweep run x sweep.se"), "sweep.seeds=\t\n");
}

TEST(Completion, OfOtherShellsAsksTheProgramToo) {
  for (const char* shell : {"zsh", "fish"}) {
    const Outcome script = run_program(std::string("completion ") + shell);
    EXPECT_EQ(script.exit_code, 0);
    EXPECT_THAT(script.output, HasSubstr(" completion words ")) << shell;
    EXPECT_THAT(script.output, Not(HasSubstr("tpudist completion words "))) << shell;
    // What the shell itself says of the script, where it is installed.
    const TempDir folder;
    write_file_atomically(folder / "script", script.output);
    const std::string check = fmt::format("! command -v {0} > /dev/null || {0} -n {1}", shell,
                                          (folder / "script").string());
    EXPECT_EQ(std::system(check.c_str()), 0) << shell;
  }
  EXPECT_EQ(run_program("completion tcsh 2>&1").exit_code, 2);
}

}  // namespace
}  // namespace tpudist::test
