#pragma once

#include "core/progress.hpp"
#include "core/thread_pool.hpp"
#include "dist/communicator.hpp"
#include "dist/node_place.hpp"

namespace tpudist {

// What a job runs on: borrowed for the job, the same kind on every rank.
struct JobContext {
  Communicator& world;  // host memory
  ThreadPool& pool;     // this rank's threads
  NodePlace place;      // node and GPU of this rank
  ProgressSink& progress;
};

}  // namespace tpudist
