#pragma once

#include <string>

#include "core/file_system.hpp"
#include "core/progress.hpp"
#include "core/thread_pool.hpp"
#include "core/trace.hpp"
#include "dist/collectives/communicator.hpp"
#include "dist/collectives/node_topology.hpp"
#include "dist/health/watchdog.hpp"

namespace tpudist {

// The resources of a job, borrowed for the job; every rank has the same kind.
struct JobContext {
  Communicator& world;    // host memory
  ThreadPool& pool;       // this rank's threads
  NodeTopology topology;  // node and GPU of this rank
  ProgressSink& progress;
  Watchdog* watchdog = nullptr;  // null: no watchdog
  Trace* trace = nullptr;        // null: no trace
  // Writes checkpoints, in one more thread; tests pass one that fails.
  FileSystem& files = posix_file_system();
  std::string commit = "unknown";  // of the sources of this program, for the records of runs
  bool trained_before = false;     // an earlier run took a part of this process's time

  // Tells the watchdog what this rank does next. `phase`: a string literal; `step` < 0: no steps.
  void enter(const char* phase, std::int64_t step = -1) const {
    if (watchdog) watchdog->activity().enter(phase, step);
  }
  // Tells the watchdog that this rank finished work outside the pool.
  void advance() const {
    if (watchdog) watchdog->activity().advance();
  }
};

}  // namespace tpudist
