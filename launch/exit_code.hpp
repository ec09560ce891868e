#pragma once

#include <exception>
#include <functional>
#include <string>

namespace tpudist {

// What a user is told of an exception: one line without the program's name, and the exit code of
// the process.
struct Failure {
  std::string message;
  int exit_code = 1;
};

// Describes any exception of tpudist, the standard library, or a library beneath. Those of LibTorch carry a
// stack of C++ functions below their first line, which is left out. Lack of memory, on the host or
// on a GPU, comes with the keys that lower the need for it.
Failure describe_failure(const std::exception& error);

// This process's rank and the number of ranks in what started it (mpirun or srun), read from the
// environment; 0 and 1 when it was started by hand.
int launched_rank();
int launched_ranks();

// Tells the user of what ends this process, and returns the exit code.
using TellFailure = std::function<int(const Failure&)>;

// Prints "tpudist: error: MESSAGE" to standard error, with the rank where it is one of several.
int print_failure(const Failure& failure);

}  // namespace tpudist
