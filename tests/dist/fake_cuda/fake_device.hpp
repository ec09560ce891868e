#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "tests/dist/fake_cuda/fake_job.hpp"
#include "tests/dist/thread_ranks.hpp"

// The inside of the fake, guarded by Job::mutex.

namespace tpudist::fake {

// Thrown out of a call: the job has ended, or this rank is lost.
using Killed = test::RanksEnded;

struct NcclCall;

struct Operation {
  std::string name;
  std::function<void()> run;
  CUevent_st* awaited = nullptr;  // if `run` is empty: waits for this record of the event
  std::uint64_t record = 0;
  std::shared_ptr<NcclCall> call;  // if `run` is empty: a call of NCCL
};

struct Allocation {
  std::byte* data = nullptr;
  std::size_t bytes = 0, mapped = 0;
  int device = -1;  // -1: page-locked
  bool live = true;
};

struct Rank {
  int number = 0;
  int calls = 0, calls_of_function = 0;
  std::set<std::string> polled;  // functions since the last call that is no poll
  std::string failed;            // the call that failed, "" if none
  bool stuck = false, async_error = false;
  CUstream_st* default_stream = nullptr;
};

struct Job {
  explicit Job(const JobOptions& options);
  ~Job();

  std::mutex mutex;
  JobOptions options;
  CounterRng rng;
  std::vector<Rank> ranks;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::vector<std::unique_ptr<CUevent_st>> events;
  std::vector<Allocation> memory;
  std::map<std::string, std::vector<ncclComm*>> cliques;  // by id
  std::vector<std::shared_ptr<ncclComm>> comms;
  int ids = 0;
  bool ended = false;
  JobResult result;

  void mistake(const std::string& text);
  // Runs the head of the stream, or the operation for which it waits. False if neither can run now.
  bool advance(CUstream_st& stream);
  // Lets the devices work by themselves, at every call.
  void work_in_background();
  void queue(CUstream_st& stream, Operation operation);
  // Whether the bytes lie in one live allocation that the device may use. If not, adds a mistake.
  bool holds(const void* data, std::size_t bytes, int device, const std::string& what);
  // Makes the memory of a device, or of all devices (-1), usable or not.
  void protect(int device, bool usable);
};

extern Job* job;
extern thread_local Rank* rank;
extern thread_local int current_device;

// One call of CUDA or NCCL: is counted, meets the fault, and holds the lock. If `failed()`, the
// call must return an error.
class Entry {
 public:
  enum Kind { usual, poll, quiet };  // quiet: called by destructors, throws nothing
  explicit Entry(const char* name, Kind kind = usual);

  bool failed() const { return failed_; }
  std::unique_lock<std::mutex>& lock() { return lock_; }
  // Lets other threads continue; throws Killed when the job has ended.
  void wait();

 private:
  std::unique_lock<std::mutex> lock_;
  bool failed_ = false;
  Kind kind_;
};

cudaStream_t resolve(cudaStream_t stream);

}  // namespace tpudist::fake

struct CUstream_st {
  int device = 0;
  std::deque<tpudist::fake::Operation> operations;
  bool visited = false;
};

struct CUevent_st {
  int device = 0;
  CUstream_st* stream = nullptr;  // of the last record
  std::uint64_t recorded = 0, done = 0;
};
