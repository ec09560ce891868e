// The estimate of a GPU's memory against what a training on the emulated device holds
// (device_training_test.cpp).

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/paths.hpp"
#include "tests/train/device_peak.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/loop/forecast.hpp"

namespace tpudist::test {
namespace {

constexpr int kSteps = 4;

Experiment small(const std::string& file, const std::vector<std::string>& batch) {
  std::vector<std::string> overrides{"data.shards=" + tiny_shards().string(), "data.include={}",
                                     "train.steps=" + std::to_string(kSteps)};
  overrides.insert(overrides.end(), batch.begin(), batch.end());
  ConfigDocument document =
      ConfigDocument::load(source_folder() / "experiments" / (file + ".yaml"), overrides);
  return read_experiment(document);
}

// An experiment on one emulated GPU.
struct OneDevice : OneRank {
  explicit OneDevice(const Experiment& experiment)
      : OneRank(2), setup(experiment, experiment.training_data(), pool, 0, 1, *world) {
    context.topology.device = 0;
  }
  const TrainingSetup setup;
};

// The estimate over the most bytes of any step, for a file of experiments/ with small batches.
double ratio_of(const std::string& file, const std::vector<std::string>& batch) {
  const Experiment experiment = small(file, batch);
  OneDevice one(experiment);
  const DeviceBytes bytes = device_bytes(one.setup, 1);
  return static_cast<double>(bytes.total() - bytes.workspaces) /
         static_cast<double>(counted_peak(one.setup, one.context, 0, kSteps));
}

struct DeviceMemory : ::testing::TestWithParam<const char*> {};

// step_counts says the same of all files.
TEST_P(DeviceMemory, IsEstimatedWithinAHalf) {
  const double ratio = ratio_of(GetParam(), {"ensemble={members: 2}", "batch.slates=4"});
  EXPECT_GT(ratio, 1 / 1.5);
  EXPECT_LT(ratio, 1.5);
}

INSTANTIATE_TEST_SUITE_P(Files, DeviceMemory,
                         ::testing::Values("xla", "best_nlp", "alexnet", "systems/first_place_tile",
                                           "systems/harvard", "systems/gst", "systems/fourth_place",
                                           "systems/latenciaga_xla_gatv2",
                                           "systems/tpugraphs_tile_resgcn_late"));

// The graph of the first step is small; all members draw their own rows of a larger one later.
TEST(DeviceMemoryOfOneSlate, IsThatOfTheLargestStep) {
  const double ratio = ratio_of("systems/harvard", {"ensemble={members: 4, vary: [init, order]}",
                                                    "batch.slates=1", "seed.order=4"});
  EXPECT_GT(ratio, 1 / 1.5);
  EXPECT_LT(ratio, 1.5);
}

// Chunks stay apart, and so do members with rows of their own.
TEST(DeviceMemoryOfChunks, DoesNotGrowWithTheMembers) {
  const auto pass = [](const char* members) {
    const Experiment experiment =
        small("xla", {std::string("ensemble={vary: [init, order], members: ") + members + "}",
                      "batch={slates: 2, configs: 8, config_chunk: 4}"});
    return device_bytes(OneDevice(experiment).setup, 1).pass;
  };
  EXPECT_LT(pass("8"), 2 * pass("1"));
}

}  // namespace
}  // namespace tpudist::test
