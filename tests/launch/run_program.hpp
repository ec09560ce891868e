#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/support/matchers.hpp"
#include "tests/support/paths.hpp"

namespace tpudist::test {

struct Outcome {
  int exit_code = -1;
  std::string output;  // what the command wrote to its standard output
};

// Runs the program with these arguments in a shell; add 2>&1 to see its errors, too. `before`
// precedes the program's name, e.g. "cd folder && NAME=value ".
inline Outcome run_program(const std::string& arguments, const std::string& before = "") {
  Outcome outcome;
  FILE* pipe = ::popen((before + program().string() + " " + arguments).c_str(), "r");
  if (!pipe) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

// What was printed, where the command must end with this exit code.
inline std::string output_of(const Outcome& outcome, int exit_code = 0) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.output;
  return outcome.output;
}

// A folder in which a user calls the program.
class CommandTest : public FolderTest {
 protected:
  // The output includes standard error. `before` as of run_program, in the folder.
  Outcome call(const std::string& arguments, const std::string& before = "") const {
    return run_program(arguments + " 2>&1", "cd " + folder_.path().string() + " && " + before);
  }
};

}  // namespace tpudist::test
