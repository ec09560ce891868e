// Training on graphs that lie in files of the node: the same bits as without, whatever becomes of
// the files, and nothing writes into them, which would end the process.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

class SharedGraphs : public ::testing::Test {
 protected:
  Experiment experiment(std::vector<std::string> overrides, bool shared) const {
    overrides.insert(overrides.end(), {"train.evaluate_every=2", "train.checkpoint_every=2"});
    if (shared) overrides.push_back("data.cache_dir=" + (place_ / "node").string());
    return tiny_experiment(std::move(overrides));
  }

  TrainOutcome train(const std::vector<std::string>& overrides, bool shared) {
    return run(experiment(overrides, shared), place_ / ("run-" + std::to_string(runs_++)), 2);
  }

  void expect_equal(const TrainOutcome& found, const TrainOutcome& expected) const {
    EXPECT_EQ(found.parameter_hash, expected.parameter_hash);
    ASSERT_TRUE(found.evaluation && expected.evaluation);
    EXPECT_EQ(found.evaluation->member_means(), expected.evaluation->member_means());
  }

  // The files of prepared graphs: training and validation.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(place_ / "node")) {
      if (entry.path().filename().string().find(".prepared.") != std::string::npos)
        found.push_back(entry.path());
    }
    return found;
  }

  TempDir place_;
  int runs_ = 0;
};

TEST_F(SharedGraphs, GiveTheSameBitsForAllKindsOfNetworksAndPlans) {
  const std::vector<std::vector<std::string>> systems{
      {},
      {"plan=dense"},
      {"model.preset=latenciaga_nlp", "batch.unit=graph", "batch.unit_slates=2"},
      {"batch.edge_dropout=0.3"},
      {"data.reduce={max_nodes: 20}"},
      {"data.reduce={max_nodes: 20, drawn: trained}"},
      {"model.readout.widths=[4]", "ensemble.members=1", "ensemble.folds=none"},
      {"model.encoder={code_width: 2, node_width: 0}", "ensemble.members=1", "ensemble.folds=none"},
      {"model.encoder={node_transform: standardised, join: late}",
       "model.blocks=[{layer: sage, width: 8}, {layer: join_config, width: 8}]"},
      {"data.collection=tile:xla", "model.preset=latenciaga_tile"},
  };
  for (const auto& overrides : systems) {
    SCOPED_TRACE(overrides.empty() ? "preset" : overrides.front());
    const TrainOutcome expected = train(overrides, false);
    expect_equal(train(overrides, true), expected);  // makes the files
    expect_equal(train(overrides, true), expected);  // takes them
  }
}

TEST_F(SharedGraphs, GiveTheSameBitsWhenFilesAreDamagedOrGone) {
  const TrainOutcome expected = train({}, false);
  expect_equal(train({}, true), expected);
  ASSERT_EQ(files().size(), 2u);
  for (const fs::path& path : files()) {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(fs::file_size(path) / 2));
    stream.write("damaged!", 8);
  }
  expect_equal(train({}, true), expected);
  for (const fs::path& path : files()) fs::remove(path);
  expect_equal(train({}, true), expected);
  EXPECT_EQ(files().size(), 2u);
  // No folder for files: each process keeps its own.
  fs::remove_all(place_ / "node");
  std::ofstream(place_ / "node") << "not a folder";
  expect_equal(train({}, true), expected);
}

// A run may stop with the cache and go on without it, and the other way round.
TEST_F(SharedGraphs, MayComeAndGoWhenARunIsResumed) {
  const std::uint64_t expected = train({}, false).parameter_hash;
  for (const bool first : {true, false}) {
    const fs::path folder = place_ / (first ? "first" : "second");
    const TrainOutcome stopped = run(experiment({}, first), folder, 1, false, stop_after(2));
    ASSERT_TRUE(stopped.stopped);
    const TrainOutcome resumed = run(experiment({}, !first), folder, 2, true);
    EXPECT_FALSE(resumed.stopped);
    EXPECT_EQ(resumed.parameter_hash, expected);
  }
}

}  // namespace
}  // namespace tpudist::test
