#pragma once

#include <filesystem>
#include <functional>

#include "core/file_system.hpp"
#include "core/progress.hpp"
#include "dist/collectives/self_communicator.hpp"
#include "models/kernels/threads.hpp"
#include "train/loop/trainer.hpp"

namespace tpudist::test {

// Trains in this process alone, in a new run folder unless it is there, and returns the outcome.
// `files`: what checkpoints are written with.
inline TrainOutcome run(
    const Experiment& experiment, const std::filesystem::path& folder, int threads = 1,
    bool resume = false, std::function<bool()> stop = [] { return false; },
    FileSystem& files = posix_file_system()) {
  const auto world = make_self_communicator();
  ThreadPool pool(threads, use_one_thread_per_worker);
  NoProgress progress;
  JobContext context{*world, pool, NodeTopology{}, progress, nullptr, nullptr, files};
  return train(experiment, folder, resume, context, stop);
}

inline TrainOutcome resume(const Experiment& experiment, const std::filesystem::path& folder) {
  return run(experiment, folder, 1, true);
}

}  // namespace tpudist::test
