#pragma once

#include <exception>
#include <functional>
#include <string>

namespace tpudist {

// The report of an exception to the user: one line without the program's name, and the exit code.
struct Failure {
  std::string message;
  int exit_code = 1;
};

// Describes any exception of tpudist, the standard library, or a library below. Keeps only the
// first line of LibTorch's exceptions, without the C++ stack. The message for a lack of memory, on
// host or GPU, names the configuration keys that reduce the need.
Failure describe_failure(const std::exception& error);

// This process's rank and the number of ranks, from the environment that mpirun or srun sets; 0 and
// 1 without a launcher.
int launched_rank();
int launched_ranks();

// Reports the failure that ends this process, and returns the exit code.
using PrintFailure = std::function<int(const Failure&)>;

// Prints "tpudist: error: MESSAGE" to standard error, with the rank if there are several.
int print_failure(const Failure& failure);

// From now on, an error that nothing can catch is printed before it ends the process with its exit
// code. Example: a destructor that throws after its GPU has failed.
void print_uncaught_errors();

}  // namespace tpudist
