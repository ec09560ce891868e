// What a reader refuses; reading itself is tested with the conversion of graphs.

#include "data/shards/shard_reader.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "core/error.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/data/shards/test_shards.hpp"
#include "tests/support/converted.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

class ShardReaderTest : public ::testing::Test {
 protected:
  ShardReaderTest() {
    NpzFixture::layout().write(folder_ / "npz/layout/xla/random/train/x.npz");
    entry_ = list_graphs(convert_npz(folder_.path()), kLayout).at(0);
  }

  std::string error_of_opening() const {
    return message_of<Error>([&] { GraphReader reader(entry_); });
  }

  template <typename Edit>
  void edit(const Edit& change) {
    edit_shard(entry_.shard, change);
  }

  TempDir folder_;
  GraphEntry entry_;
};

TEST_F(ShardReaderTest, SaysWhereAGraphIs) {
  EXPECT_TRUE(entry_.shard.is_absolute());
  EXPECT_EQ(entry_.group, "/graphs/000000");
  EXPECT_EQ(entry_.nodes, 5);
  EXPECT_EQ(entry_.edges, 4);
  EXPECT_EQ(entry_.config_nodes, 2);
  EXPECT_EQ(GraphReader(entry_).chunk_rows(), 6);
}

TEST_F(ShardReaderTest, RefusesAShardThatIsNotComplete) {
  edit([](const Hdf5Id& file) { H5Adelete(file.get(), "complete"); });
  EXPECT_THAT(error_of_opening(), HasSubstr("attribute complete is missing"));
  edit([](const Hdf5Id& file) { write_attribute(file, "complete", std::int64_t{0}); });
  EXPECT_THAT(error_of_opening(), HasSubstr("is not complete; convert again"));
}

TEST_F(ShardReaderTest, RefusesAnotherVersionOrFormat) {
  edit([](const Hdf5Id& file) {
    H5Adelete(file.get(), "version");
    write_attribute(file, "version", std::int64_t{2});
  });
  EXPECT_THAT(error_of_opening(), HasSubstr("has shard version 2, but this program reads 1"));
  edit([](const Hdf5Id& file) {
    H5Adelete(file.get(), "format");
    write_attribute(file, "format", "other");
  });
  EXPECT_THAT(error_of_opening(), HasSubstr("is HDF5 but not a shard of tpudist"));
}

TEST_F(ShardReaderTest, RefusesAnEntryThatDoesNotFit) {
  entry_.configs = 7;
  EXPECT_THAT(error_of_opening(), HasSubstr("configs differs from the manifest's 7"));
  entry_.configs = 6;
  entry_.group = "/graphs/000001";
  EXPECT_THAT(error_of_opening(), HasSubstr("there is no group /graphs/000001"));
  entry_.shard = folder_ / "none.h5";
  EXPECT_THAT(error_of_opening(), HasSubstr("there is no such file"));
}

TEST_F(ShardReaderTest, RefusesValuesThatNoGraphHas) {
  const auto error = [&] {
    return message_of<DataError>([&] {
      const GraphReader reader(entry_);
      reader.read_graph();
      reader.read_run_times();
    });
  };
  EXPECT_EQ(error(), "");
  overwrite_dataset<std::int64_t>(entry_.shard, "runtime",
                                  {100, 300, INT64_MAX, 400, 500, 102});  // which `convert` takes
  EXPECT_EQ(error(), "");
  overwrite_dataset<std::int64_t>(entry_.shard, "runtime", {100, 300, 0, 400, 500, 102});
  EXPECT_THAT(error(), HasSubstr("/runtime: value 0 of element 2 is out of range; convert again"));
  entry_.split = "test";  // where run times may be hidden
  EXPECT_EQ(error(), "");
  overwrite_dataset<std::int64_t>(entry_.shard, "runtime", {100, 300, -1, 400, 500, 102});
  EXPECT_THAT(error(), HasSubstr("/runtime: value -1 of element 2"));
  overwrite_dataset<std::int32_t>(entry_.shard, "config_nodes", {3, 3});
  EXPECT_THAT(error(), HasSubstr("/config_nodes: has node 3 twice; convert again"));
  std::vector<float> features(5 * kNodeFeatures);
  features[7] = std::nanf("");
  overwrite_dataset(entry_.shard, "node_feat", features);
  EXPECT_THAT(error(), HasSubstr("/node_feat: element 7 is nan; convert again"));
}

TEST_F(ShardReaderTest, RefusesFeaturesWithoutCodesThatAreNotFinite) {
  NpzFixture kernel = NpzFixture::make_tile();
  kernel.features[0] = 0.5f;  // no integer type holds it
  kernel.write(folder_ / "npz/tile/xla/train/y.npz");
  entry_ = list_graphs(convert_npz(folder_.path()), kTile).at(0);
  EXPECT_NO_THROW(GraphReader(entry_).read_stored_features(1, 2));
  kernel.features[24 + 3] = std::nanf("");
  overwrite_dataset(entry_.shard, "config_feat", kernel.features);
  const GraphReader reader(entry_);
  EXPECT_THAT(message_of<DataError>([&] { reader.read_stored_features(1, 2); }),
              HasSubstr("/config_feat: element 27 is nan; convert again"));
  EXPECT_NO_THROW(reader.read_stored_features(2, 1));
}

TEST_F(ShardReaderTest, RefusesANameThatNoTableCanHold) {
  edit([](const Hdf5Id& file) {
    const Hdf5Id group(H5Gopen2(file.get(), "/graphs/000000", H5P_DEFAULT), H5Gclose);
    H5Adelete(group.get(), "name");
    write_attribute(group, "name", "a\nb");
  });
  EXPECT_THAT(message_of<DataError>([&] { summarize_shard(entry_.shard); }),
              HasSubstr("its name has control characters"));
}

TEST_F(ShardReaderTest, RefusesAGraphThatIsListedTwice) {
  const auto path = folder_ / "shards/layout/xla/random/manifest.json";
  Manifest manifest = read_manifest(path, kLayout);
  manifest.shards[0].graphs.push_back(manifest.shards[0].graphs[0]);
  write_manifest(manifest, path);
  EXPECT_THAT(message_of<DataError>([&] { list_graphs(folder_ / "shards", kLayout, "train"); }),
              HasSubstr("manifest.json: lists the graph x of train twice"));
}

TEST_F(ShardReaderTest, RefusesAGroupBehindALink) {
  std::filesystem::copy(entry_.shard, folder_ / "other.h5");
  edit([&](const Hdf5Id& file) {
    H5Ldelete(file.get(), "/graphs", H5P_DEFAULT);
    H5Lcreate_external((folder_ / "other.h5").c_str(), "/graphs", file.get(), "/graphs",
                       H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_THAT(error_of_opening(), HasSubstr("/graphs is a link to another place"));
}

TEST_F(ShardReaderTest, RefusesRowsThatAreNotThere) {
  const GraphReader reader(entry_);
  EXPECT_NO_THROW(reader.read_codes(6, 0));
  EXPECT_THROW(reader.read_codes(6, 1), std::out_of_range);
  EXPECT_THROW(reader.read_codes(-1, 1), std::out_of_range);
  EXPECT_THROW(reader.read_config_features(0, 1), std::logic_error);
}

TEST_F(ShardReaderTest, ManyThreadsShareOneReader) {
  const GraphReader reader(entry_);
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (int& mine : right) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        mine += std::get<0>(reader.read_codes(1, 2)) == std::vector<std::uint8_t>{1, 1, 0, 0} &&
                reader.read_graph().nodes == 5 && reader.read_run_times().configs() == 6;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(right, ::testing::Each(50));
}

TEST(RunTimeStatistics, CountsRepeatsAndTheirSpread) {
  RunTimes times;
  times.runtime = {100, 300, 101, 400, 500, 102, 303, 404};
  times.group = {0, 1, 0, 2, 3, 0, 1, 2};
  const RunTimeStatistics s = run_time_statistics(times);
  EXPECT_EQ(s.min, 100);
  EXPECT_EQ(s.max, 500);
  EXPECT_EQ(s.distinct_configs, 4);
  EXPECT_EQ(s.repeated_configs, 3);
  EXPECT_EQ(s.repeated_rows, 7);
  EXPECT_EQ(s.most_repeats, 3);
  // numpy.percentile([0.02, 0.01, 0.01], [25, 50, 75])
  ASSERT_TRUE(s.spread.has_value());
  EXPECT_NEAR((*s.spread)[0], 0.01, 1e-12);
  EXPECT_NEAR((*s.spread)[1], 0.01, 1e-12);
  EXPECT_NEAR((*s.spread)[2], 0.015, 1e-12);
}

TEST(RunTimeStatistics, TileIsComparedByNormalizedRunTime) {
  RunTimes times;
  times.runtime = {100, 300};
  times.normalizer = {50, 100};
  times.group = {0, 0};
  EXPECT_NEAR(run_time_statistics(times).spread->at(1), 0.5, 1e-12);
}

TEST(RunTimeStatistics, TestSplitsHaveNoSpread) {
  RunTimes times;
  times.runtime = {0, 0};
  times.group = {0, 0};
  EXPECT_EQ(run_time_statistics(times).spread, std::nullopt);
  EXPECT_EQ(run_time_statistics(times).repeated_configs, 1);
  EXPECT_EQ(run_time_statistics({}).distinct_configs, 0);
}

TEST(CollectionStatistics, TellsHowGraphsAreStored) {
  const TempDir folder;
  NpzFixture::layout().write(folder / "npz/layout/nlp/default/valid/x.npz");
  const auto graphs = collection_statistics(convert_npz(folder.path()), {"layout:nlp:default"});
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(graphs[0].entry.split, "valid");
  EXPECT_EQ(graphs[0].entry.states, 8);
  EXPECT_EQ(graphs[0].entry.max_states_per_node, 4);
  EXPECT_EQ(graphs[0].entry.float_bytes, 6u * 2 * kLayoutConfigFeatures * 4);
  EXPECT_EQ(graphs[0].entry.memory_bytes, 6u * 2 + 8u * kLayoutConfigFeatures * 4);
  EXPECT_EQ(graphs[0].times.distinct_configs, 4);
  EXPECT_EQ(graphs[0].entry.distinct_configs, 4);
}

}  // namespace
}  // namespace tpudist::test
