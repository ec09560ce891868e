#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/launch/run_program.hpp"

namespace tpudist::test {

// How to start one rank: arguments of the program, options of mpirun such as "-x NAME=value" and
// "--wdir FOLDER".
struct RankStart {
  std::string arguments, options = {};
};

// The program on several ranks, started by mpirun from this process. One pipe carries the standard
// output and standard error of ranks and mpirun.
class MpiProgram {
 public:
  // `starts`: one for each rank. A job that takes longer than a minute, or under sanitizers
  // longer than five, is ended with exit code 124.
  explicit MpiProgram(const std::vector<RankStart>& starts);
  // A command of the shell in place of mpirun.
  explicit MpiProgram(const std::string& command);
  ~MpiProgram();
  MpiProgram(const MpiProgram&) = delete;
  MpiProgram& operator=(const MpiProgram&) = delete;

  // Reads until `text` has been written. False when the job ends before.
  bool wait_for(const std::string& text);
  // The process of the command.
  pid_t process() const { return pid_; }
  // The processes of the ranks.
  std::vector<pid_t> ranks() const;
  // Drops what has been read so far: wait_for and `finish` see only later output.
  void forget() { output_.clear(); }
  // Stops reading, like `| head`.
  void close_output();
  // Reads to the end, waits for mpirun, and returns its exit code and all output.
  Outcome finish();

 private:
  bool read_some();

  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string output_;
};

// Runs the program with equal arguments on all ranks; 0 ranks: without mpirun.
Outcome run_ranks(int ranks, const std::string& arguments);
// Puts an empty folder in the place of a file that a program opens again for each line, so that
// appending fails from then on.
void replace_by_folder(const std::filesystem::path& file);
// Runs ranks with different arguments.
Outcome run_ranks(const std::vector<RankStart>& starts);

}  // namespace tpudist::test
