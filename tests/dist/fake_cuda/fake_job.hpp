#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dist/collectives/communicator.hpp"

// A job on GPUs without a GPU: its ranks are threads of this process, and CUDA and NCCL are fakes
// (cuda_runtime_api.h, nccl.h of this folder) that do what their documentation allows at the worst
// moment. Device memory traps when the host touches it outside of an operation, is full of
// signalling NaNs when fresh, and is never used again when freed. Streams run as late or as early as
// they may, or at random. Calls of NCCL may stay in progress for a while before they reach their
// stream. Rank r has device r.
namespace tpudist::fake {

enum class Schedule { early, late, random };

struct Fault {
  enum class Kind {
    none,
    error,        // the call fails
    lost,         // the rank ends without a word
    async_error,  // from the call on its communicators report an error, and do nothing more
    stuck         // from the call on its device does nothing more, and NCCL stays in progress
  };
  Kind kind = Kind::none;
  int rank = 0;
  // From 1. Polling counts once for each thing that is waited for, so that runs of one program have
  // the same numbers.
  int call = 0;
  std::string function = {};  // with it only calls of this function are counted
};

struct JobOptions {
  int ranks = 1;
  Schedule schedule = Schedule::random;
  std::uint64_t seed = 1;
  Fault fault = {};
  // The ranks are processes, and this one is one of them: mistakes are printed, and a lost rank is
  // killed.
  bool processes = false;
};

struct JobResult {
  // Errors that left `body`, in the order of time, as "rank 1: text". The first one ends the job.
  std::vector<std::string> errors;
  // What a program must not do: touch freed memory, copy pageable memory asynchronously, use
  // another rank's device, call CUDA or NCCL after one of its calls has failed, ...
  std::vector<std::string> mistakes;
  std::vector<int> calls;  // [ranks]
  std::string faulted;     // the function that the fault met; "" if it met none
  double seconds = 0;
};

// Runs `body` in one thread for each rank, with a communicator of all of them over host memory. An
// error of a rank ends all others at their next call of CUDA, NCCL or the communicator, as
// end_all_ranks would. One job at a time.
JobResult run_job(const JobOptions& options, const std::function<void(Communicator& world)>& body);

}  // namespace tpudist::fake
