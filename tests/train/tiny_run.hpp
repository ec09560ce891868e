#pragma once

#include <array>
#include <cstring>
#include <filesystem>
#include <functional>

#include "core/file_system.hpp"
#include "core/progress.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/kernels/cpu_process.hpp"
#include "train/loop/trainer.hpp"

namespace tpudist::test {

// Trains in this process alone, in a new run folder unless it exists, and returns the outcome.
// `files`: the file system that writes checkpoints.
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

// The path that rank 0 names, on all ranks.
inline std::filesystem::path path_of_first(Communicator& world, const std::filesystem::path& own) {
  std::array<char, 4096> text{};
  std::strncpy(text.data(), own.c_str(), text.size() - 1);
  world.broadcast(std::span<char>(text), 0);
  return text.data();
}

inline TrainOutcome resume(const Experiment& experiment, const std::filesystem::path& folder) {
  return run(experiment, folder, 1, true);
}

}  // namespace tpudist::test
