#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace tpudist {

// What a user is told of an exception: one line without the program's name, and the exit code of
// the process.
struct Failure {
  std::string message;
  int exit_code = 1;
};

// Of any exception of tpudist, the standard library, or a library beneath. Those of LibTorch carry a
// stack of C++ functions below their first line, which is left out. Lack of memory, on the host or
// on a GPU, comes with the keys that lower the need for it.
Failure describe_failure(const std::exception& error);

// This process's rank in what started it (mpirun or srun), read from the environment; 0 when it was
// started by hand.
int launched_rank();

// Prints "tpudist: error (rank 3): MESSAGE" to standard error, without a rank where there is none.
// Ranks other than 0 wait a second first: what all ranks fail of is then said once, because mpirun
// ends the others as soon as rank 0 has left.
void print_failure(const Failure& failure, std::optional<int> rank);

// Runs `body`, which gives the commands to `app` and parses the command line, and returns the exit
// code of the process: 0, that of an error, which is printed, or what a command asked for with
// CLI::RuntimeError. Both programs end this way. Help and version are printed by rank 0 alone.
int run_command_line(CLI::App& app, const std::function<void()>& body);

}  // namespace tpudist
