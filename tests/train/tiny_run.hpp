#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>

#include "core/file_system.hpp"
#include "core/progress.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/kernels/cpu_process.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/support/temp_dir.hpp"
#include "train/loop/trainer.hpp"
#include "train/scoring/scoring_session.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {

// Tests that train in a folder of their own.
struct TrainTest : ::testing::Test {
  const TempDir folder;
};

// A job of this process alone.
struct OneRank {
  explicit OneRank(int threads = 1) : pool(threads, use_one_thread_per_worker) {}

  const std::unique_ptr<Communicator> world = make_self_communicator();
  ThreadPool pool;
  NoProgress progress;
  JobContext context{*world, pool, NodeTopology{}, progress};
};

// The setup of an experiment on one rank, with what it borrows but for the experiment.
struct OneRankSetup : private OneRank, public TrainingSetup {
  explicit OneRankSetup(const Experiment& experiment)
      : TrainingSetup(experiment, experiment.training_data(), OneRank::pool, -1, 1, *world) {}
};

// Asks a training to stop after so many steps from its start.
inline std::function<bool()> stop_after(int steps) {
  return [asked = 0, steps]() mutable { return ++asked > steps; };
}

// Trains in this process alone, in a new run folder unless it exists, and returns the outcome.
// `files`: the file system that writes checkpoints.
inline TrainOutcome run(
    const Experiment& experiment, const std::filesystem::path& folder, int threads = 1,
    bool resume = false, std::function<bool()> stop = [] { return false; },
    FileSystem& files = posix_file_system()) {
  OneRank alone(threads);
  JobContext context{*alone.world, alone.pool, {}, alone.progress, nullptr, nullptr, files};
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

// Loads a checkpoint of the experiment, lets `change` change it, and writes it back.
template <typename Change>
void change_checkpoint(const std::filesystem::path& file, const Experiment& experiment,
                       const Change& change) {
  ThreadPool pool(1);
  const Network network = make_network(experiment, -1, pool);
  Checkpoint checkpoint = CheckpointFile(file).load(network.parameters());
  change(checkpoint, network.parameters());
  save_checkpoint(file, checkpoint, network.parameters());
}

// Makes one member's parameters in the checkpoint NaN, so that its next loss is not finite.
inline void spoil_member(const std::filesystem::path& file, const Experiment& experiment,
                         int member) {
  change_checkpoint(file, experiment, [&](Checkpoint& checkpoint, const ParameterTable& table) {
    std::fill_n(checkpoint.parameters.begin() + member * table.length(), table.length(),
                std::nanf(""));
  });
}

// The checkpoint of a step in the run folder of the experiment.
inline Checkpoint checkpoint_at(const std::filesystem::path& run, const Experiment& experiment,
                                std::int64_t step) {
  ThreadPool pool(1);
  const Network network = make_network(experiment, -1, pool);
  return CheckpointFile(checkpoint_path(run / "checkpoints", step)).load(network.parameters());
}

}  // namespace tpudist::test
