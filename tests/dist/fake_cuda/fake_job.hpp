#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dist/collectives/communicator.hpp"

// A job on GPUs without a GPU: the ranks are threads of this process, and CUDA and NCCL are fakes
// (cuda_runtime_api.h, nccl.h of this folder) that do what the documentation allows at the worst
// moment. Device memory traps when the host touches it outside of an operation, holds signalling
// NaNs at first, and is never used again when freed. Streams run as late or as early as allowed, or
// at random. Calls of NCCL may stay in progress for a while before they reach their stream. Rank r
// has device r.
namespace tpudist::fake {

enum class Schedule { early, late, random };

struct Fault {
  enum class Kind {
    none,
    error,        // the call fails
    lost,         // the rank ends without a message
    async_error,  // from this call on, the rank's communicators report an error and do nothing
    stuck         // from this call on, the rank's device does nothing, and NCCL stays in progress
  };
  Kind kind = Kind::none;
  int rank = 0;
  // The number of the call, from 1. All polls for one event count once, so that runs of one program
  // have the same numbers.
  int call = 0;
  std::string function = {};  // if given, only calls of this function count
};

struct JobOptions {
  int ranks = 1;
  Schedule schedule = Schedule::random;
  std::uint64_t seed = 1;
  Fault fault = {};
  // Whether this process is one rank of a job of processes: mistakes are printed, and a lost rank
  // is killed.
  bool processes = false;
  // Whether all devices are one GPU, and NCCL refuses ranks without an NCCL_HOSTID; or instances of
  // one.
  enum class Card { none, one, instances } card = Card::none;
};

struct JobResult {
  // Errors that left `body`, in the order of time, as "rank 1: text". The first error ends the job.
  std::vector<std::string> errors;
  // Forbidden actions of the program: touching freed memory, copying pageable memory
  // asynchronously, using another rank's device, calling CUDA or NCCL after a call has failed, ...
  std::vector<std::string> mistakes;
  std::vector<int> calls;  // [ranks]
  std::string faulted;     // the function that the fault met; "" if it met none
  double seconds = 0;
};

// Runs `body` in one thread for each rank, with a communicator of all ranks over host memory. An
// error of a rank ends all other ranks at their next call of CUDA, NCCL or the communicator, like
// end_all_ranks. One job at a time.
JobResult run_job(const JobOptions& options, const std::function<void(Communicator& world)>& body);

}  // namespace tpudist::fake
