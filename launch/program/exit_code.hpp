#pragma once

#include <exception>
#include <functional>
#include <string>

namespace tpudist {

// How an exception is reported to the user: one line without the program's name, and the exit code.
struct Failure {
  std::string message;
  int exit_code = 1;
};

// Describes any exception of tpudist, the standard library, or a library below. Of LibTorch's
// exceptions only the first line is kept, without the C++ stack. Out of memory, on host or GPU,
// names the configuration keys that reduce the need.
Failure describe_failure(const std::exception& error);

// This process's rank and the number of ranks, from the environment that mpirun or srun sets; 0 and
// 1 without a launcher.
int launched_rank();
int launched_ranks();

// Reports the failure that ends this process, and returns the exit code.
using PrintFailure = std::function<int(const Failure&)>;

// Prints "tpudist: error: MESSAGE" to standard error, with the rank if there are several.
int print_failure(const Failure& failure);

// From now on an error that nothing can catch, such as one of a destructor while a GPU that has
// failed is given up, is printed before it ends the process with its exit code.
void print_uncaught_errors();

}  // namespace tpudist
