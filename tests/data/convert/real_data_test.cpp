// The files of the real data set that this machine has, from NPZ to shards and back.

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "data/convert/converter.hpp"
#include "data/convert/graph_schema.hpp"
#include "data/convert/verifier.hpp"
#include "tests/data/npz/read_integers.hpp"
#include "tests/data/shards/test_shards.hpp"
#include "tests/support/real_data.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

class RealDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto root = real_data_root();
    if (!root) GTEST_SKIP() << "no files of the real data set here; see TPUDIST_REAL_DATA";
    npz_ = *root / "npz";
    NoProgress progress;
    done_ = convert({.npz_root = npz_, .shard_root = shards_}, progress);
  }

  TempDir folder_;
  std::filesystem::path npz_, shards_ = folder_ / "shards";
  std::vector<ConvertedCollection> done_;
};

TEST_F(RealDataTest, ShardsHoldWhatTheSourcesHold) {
  std::int64_t graphs = 0;
  for (const ConvertedCollection& done : done_) {
    ASSERT_TRUE(done.published) << done.bad.at(0).error;
    for (const GraphEntry& entry : list_graphs(shards_, done.collection)) {
      const NpzReader npz(npz_ / entry.source.path);
      const auto source = open_config_features(npz, done.collection).read_floats();
      const GraphReader reader(entry);
      const auto stored = config_features(reader, entry);
      ASSERT_EQ(stored.size(), source.size()) << entry.source.path;
      EXPECT_EQ(std::memcmp(stored.data(), source.data(), source.size() * sizeof(float)), 0);
      const Graph graph = reader.read_graph();
      EXPECT_EQ(graph.node_features, npz.open("node_feat").read_floats()) << entry.source.path;
      const auto edges = read_integers(npz.open("edge_index"));
      EXPECT_TRUE(std::equal(edges.begin(), edges.end(), graph.edge_index.begin()));
      const auto opcodes = read_integers(npz.open("node_opcode"));
      EXPECT_TRUE(std::equal(opcodes.begin(), opcodes.end(), graph.opcodes.begin()));
      EXPECT_EQ(reader.read_run_times().runtime, read_integers(npz.open("config_runtime")));
      ++graphs;
    }
  }
  EXPECT_EQ(graphs, 18);
  NoProgress progress;
  for (const auto& checked : verify({shards_, npz_, 2}, progress)) {
    EXPECT_TRUE(checked.problems.empty()) << checked.problems.at(0);
  }
}

TEST_F(RealDataTest, AlexNetTakesFewStates) {
  const auto graphs = collection_statistics(shards_, {"layout:xla:random"});
  ASSERT_EQ(graphs.size(), 2u);
  const GraphStatistics& train = graphs[0];
  EXPECT_EQ(train.entry.configs, 26001);
  EXPECT_EQ(train.entry.states, 199);
  EXPECT_EQ(train.entry.max_states_per_node, 9);
  EXPECT_EQ(train.times.most_repeats, 58);
  // One byte for 18 floats: 72 times smaller, a little less with the dictionary.
  EXPECT_EQ(train.entry.memory_bytes, 26001u * 26 + 199 * 72);
  EXPECT_GT(train.entry.float_bytes, 70 * train.entry.memory_bytes);
  EXPECT_GT(train.entry.float_bytes, 360 * train.entry.stored_bytes);
  // The noise of equal configurations: quartiles of max / min - 1.
  EXPECT_NEAR(train.times.spread->at(0), 0.00009, 0.00001);
  EXPECT_NEAR(train.times.spread->at(1), 0.00027, 0.00001);
  EXPECT_NEAR(train.times.spread->at(2), 0.00084, 0.00001);
}

TEST_F(RealDataTest, ResNetRepeatsSomeConfigurations) {
  const auto graphs = collection_statistics(shards_, {"layout:xla:default"});
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(graphs[0].entry.states, 316);
  EXPECT_EQ(graphs[0].entry.max_states_per_node, 8);
  EXPECT_EQ(graphs[0].times.distinct_configs, 91);
}

// The tuning files from which these NPZ files were made give the same shards but for their sources.
TEST_F(RealDataTest, TuningFilesGiveWhatTheirNpzFilesGive) {
  const auto pb = *real_data_root() / "pb";
  if (!std::filesystem::exists(pb))
    GTEST_SKIP() << "no tuning files of the real data set here; see TPUDIST_REAL_DATA";
  const auto raw = folder_ / "pb", shards = folder_ / "pb-shards";
  for (const auto& [from, to] :
       {std::pair("module_tuning_data_layout.pb", "layout/xla/default/train/resnet_main_10904.pb"),
        std::pair("op_tuning_data.pb", "tile/xla/train/op_tuning_data.pb")}) {
    std::filesystem::create_directories((raw / to).parent_path());
    std::filesystem::copy_file(pb / from, raw / to);
  }
  NoProgress progress;
  for (const ConvertedCollection& done : convert({.npz_root = raw, .shard_root = shards}, progress))
    ASSERT_TRUE(done.published);
  for (const VerifiedCollection& verified : verify({shards, raw, 1}, progress))
    EXPECT_THAT(verified.problems, ::testing::IsEmpty());
  for (const ConvertedCollection& done : convert({.npz_root = raw, .shard_root = shards}, progress))
    EXPECT_EQ(done.kept, done.graphs);  // again: nothing to do
  std::int64_t graphs = 0;
  for (const char* name : {"layout:xla:default", "tile:xla"}) {
    std::map<std::string, GraphEntry> of_npz;
    for (const GraphEntry& entry : list_graphs(shards_, {name})) of_npz.emplace(entry.name, entry);
    for (const GraphEntry& entry : list_graphs(shards, {name})) {
      std::string name = entry.name;
      if (name.starts_with("op_tuning_data_")) name.erase(0, std::strlen("op_tuning_data_"));
      ASSERT_TRUE(of_npz.contains(name)) << name;
      const GraphEntry& other = of_npz.at(name);
      const GraphReader own(entry), their(other);
      EXPECT_EQ(own.read_graph().edge_index, their.read_graph().edge_index);
      EXPECT_EQ(own.read_graph().node_features, their.read_graph().node_features);
      EXPECT_EQ(own.read_graph().opcodes, their.read_graph().opcodes);
      EXPECT_EQ(own.read_graph().node_splits, their.read_graph().node_splits);
      EXPECT_EQ(config_features(own, entry), config_features(their, other));
      EXPECT_EQ(own.read_run_times().runtime, their.read_run_times().runtime);
      EXPECT_EQ(own.read_run_times().normalizer, their.read_run_times().normalizer);
      ++graphs;
    }
  }
  EXPECT_EQ(graphs, 16);
}

}  // namespace
}  // namespace tpudist::test
