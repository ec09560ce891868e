#pragma once

#include <string>

#include "core/file_system.hpp"
#include "core/progress.hpp"
#include "core/thread_pool.hpp"
#include "core/trace.hpp"
#include "dist/communicator.hpp"
#include "dist/node_topology.hpp"
#include "dist/watchdog.hpp"

namespace tpudist {

// What a job runs on: borrowed for the job, the same kind on every rank.
struct JobContext {
  Communicator& world;  // host memory
  ThreadPool& pool;     // this rank's threads
  NodeTopology place;   // node and GPU of this rank
  ProgressSink& progress;
  Watchdog* watchdog = nullptr;  // null: nobody watches
  Trace* trace = nullptr;        // null: nobody traces
  // What checkpoints are written with, by one more thread; tests give one that fails.
  FileSystem& files = posix_file_system();
  std::string commit = "unknown";  // of the sources of this program, for the records of runs

  // Tells the watchdog what this rank does next; `phase` is a literal, `step` < 0: it has no steps.
  void enter(const char* phase, std::int64_t step = -1) const {
    if (watchdog) watchdog->activity().enter(phase, step);
  }
  // Tells it that this rank finished a piece of work that is none of the pool's.
  void advance() const {
    if (watchdog) watchdog->activity().advance();
  }
};

}  // namespace tpudist
