// Manual pages and completions of shells, as the built program writes them.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::run_program;
using testing::TempDir;

// What bash offers for the last of these words, in an empty folder with one file "file.yaml".
std::string completed(const std::string& words) {
  const TempDir folder;
  write_file_atomically(folder / "file.yaml", "");
  write_file_atomically(folder / "script", run_program("completion bash").output);
  write_file_atomically(folder / "ask", ". ./script\nCOMP_WORDS=(" + words +
                                            ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_tpudist\n"
                                            "echo \"${COMPREPLY[*]}\" > answer\n");
  EXPECT_EQ(std::system(("cd " + folder.path().string() + " && bash ask").c_str()), 0);
  return read_text_file(folder / "answer");
}

TEST(Completion, OfBashKnowsCommandsOptionsAndValues) {
  EXPECT_EQ(completed("tpudist tra"), "train\n");
  EXPECT_THAT(completed("tpudist ''"), HasSubstr("sweep"));
  EXPECT_EQ(completed("tpudist train x.yaml --dr"), "--dry-run\n");
  EXPECT_EQ(completed("tpudist sweep ex"), "expand\n");
  EXPECT_EQ(completed("tpudist sweep run x.yaml --gr"), "--groups\n");
  EXPECT_EQ(completed("tpudist evaluate runs/a --split va"), "valid\n");
  EXPECT_EQ(completed("tpudist completion f"), "fish\n");
  EXPECT_EQ(completed("tpudist train fi"), "\n");             // files, by bash itself
  EXPECT_EQ(completed("tpudist train x --run-dir -"), "\n");  // a value, no option
}

TEST(Completion, OfOtherShellsHasAllCommandsToo) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome script = run_program(std::string("completion ") + shell);
    EXPECT_EQ(script.exit_code, 0);
    for (const char* word : {" sweep run", "min-members", "doctor"})
      EXPECT_THAT(script.output, HasSubstr(word)) << shell;
  }
  EXPECT_EQ(run_program("completion tcsh 2>&1").exit_code, 2);
}

TEST(Manual, HasAPageForEachCommand) {
  const TempDir folder;
  const Outcome written = run_program("man --dir " + (folder / "man1").string());
  EXPECT_EQ(written.exit_code, 0) << written.output;
  for (const char* name : {"tpudist", "tpudist-train", "tpudist-sweep", "tpudist-man"}) {
    const std::string page = read_text_file(folder / "man1" / (std::string(name) + ".1"));
    EXPECT_THAT(page, HasSubstr("\n.SH NAME\n")) << name;
  }
  const std::string train = run_program("man train").output;
  EXPECT_EQ(train, read_text_file(folder / "man1/tpudist-train.1"));
  EXPECT_THAT(train, HasSubstr(".BI \"\\-\\-run\\-dir \" \"text\"\nFolder of the run"));
  EXPECT_THAT(train, HasSubstr(".SH EXAMPLES\n.nf\nmpirun \\-np 8 tpudist train"));
  EXPECT_THAT(run_program("man sweep").output, HasSubstr(".SH \"tpudist sweep submit\"\n"));
  EXPECT_THAT(run_program("man evaluate").output, HasSubstr("\"train|valid\"\n"));
  EXPECT_THAT(run_program("man").output, HasSubstr(".BR tpudist\\-rank (1)\n"));
  EXPECT_THAT(run_program("man trian 2>&1").output, HasSubstr("did you mean train?"));
}

// groff would warn of a request that it does not know.
TEST(Manual, IsWhatGroffUnderstands) {
  if (std::system("command -v groff > /dev/null") != 0) GTEST_SKIP() << "groff is not installed";
  for (const char* command : {"", "train", "sweep", "synth"}) {
    const std::string page = std::string("man ") + command;
    const Outcome shown = run_program(page + " | groff -man -Tascii -ww 2>&1 | sed 's/.\\x08//g'");
    EXPECT_THAT(shown.output, Not(HasSubstr("warning"))) << shown.output;
    EXPECT_THAT(shown.output, HasSubstr("SYNOPSIS")) << shown.output;
  }
}

}  // namespace
}  // namespace tpudist
