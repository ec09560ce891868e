#include "data/loading/dataset.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/random.hpp"
#include "data/loading/open_graph.hpp"
#include "tests/data/loading/dataset_case.hpp"
#include "tests/support/real_data.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Rows ten_rows(CounterRng& random, std::uint64_t below) {
  Rows rows(10);
  for (std::int64_t& row : rows) row = static_cast<std::int64_t>(random.below(below));
  return rows;
}

TEST_F(DatasetTest, HoldsTheGraphsInTheOrderOfTheirNames) {
  add(NpzFixture::layout(), "resnet");
  add(NpzFixture::layout(), "bert");
  add(NpzFixture::layout(), "valid_only", "valid");
  convert_all();
  const Dataset dataset = open();
  ASSERT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.graph(0).name, "bert");
  EXPECT_EQ(dataset.graph(1).name, "resnet");
  EXPECT_EQ(dataset.entry(1).name, "resnet");
  const Graph& graph = dataset.graph(0);
  EXPECT_EQ(graph.nodes, 5);
  EXPECT_EQ(graph.edges, 4);
  EXPECT_EQ(graph.node_features, NpzFixture::layout().node_feat);
  EXPECT_THAT(graph.config_nodes, ElementsAre(1, 3));
  EXPECT_THAT(dataset.run_times(0).runtime, ElementsAre(100, 300, 101, 400, 500, 102));
  EXPECT_THROW(dataset.graph(2), std::out_of_range);
}

TEST_F(DatasetTest, GivesTheRowsThatAreAskedForInTheirOrder) {
  const NpzFixture fixture = NpzFixture::layout();
  add(fixture, "g");
  convert_all();
  const Dataset dataset = open();
  EXPECT_EQ(dataset.rows(0), 6);
  const Slate slate = dataset.slate(0, Rows{4, 0, 4, 2});
  EXPECT_THAT(slate.configs, ElementsAre(4, 0, 4, 2));
  EXPECT_THAT(slate.targets, ElementsAre(500, 100, 500, 101));
  EXPECT_EQ(slate.states.size(), 4u * 2);
  EXPECT_EQ(features_of(dataset, slate), expected_features(fixture, slate));
  EXPECT_THROW(dataset.slate(0, Rows{6}), std::out_of_range);
  EXPECT_THROW(dataset.slate(0, Rows{-1}), std::out_of_range);
  EXPECT_THROW(dataset.slate(1, Rows{0}), std::out_of_range);
  EXPECT_TRUE(dataset.slate(0, {}).states.empty());
}

TEST_F(DatasetTest, MergesDuplicatesAsAsked) {
  const NpzFixture fixture = NpzFixture::layout();  // configurations 0, 2, 5 are equal
  add(fixture, "g");
  convert_all();
  const Dataset dataset = open(DuplicatesPolicy::median);
  EXPECT_EQ(dataset.rows(0), 4);
  const Slate slate = dataset.slate(0, Rows{0, 1, 2, 3});
  EXPECT_THAT(slate.configs, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(slate.targets, ElementsAre(101, 300, 400, 500));
  EXPECT_EQ(features_of(dataset, slate), expected_features(fixture, slate));
  EXPECT_EQ(dataset.run_times(0).configs(), 6);  // every measured row is still there
  EXPECT_THROW(dataset.target(0, 4), std::out_of_range);
}

TEST_F(DatasetTest, GivesTilesAStateForEachConfiguration) {
  const NpzFixture fixture = NpzFixture::make_tile();
  add(fixture, "kernel");
  convert_all();
  for (const CacheMode mode : {CacheMode::memory, CacheMode::stream}) {
    const Dataset dataset = open(DuplicatesPolicy::keep, mode, kTile);
    EXPECT_FALSE(dataset.coded(0));
    const Slate slate = dataset.slate(0, Rows{3, 0});
    EXPECT_THAT(slate.states, ElementsAre(0, 1));
    EXPECT_EQ(slate.local_states.size(), 2u * kTileConfigFeatures);
    EXPECT_THAT(slate.targets, ElementsAre(202.0 / 50, 2));
    EXPECT_EQ(features_of(dataset, slate), expected_features(fixture, slate));
  }
  const Dataset merged = open(DuplicatesPolicy::min, CacheMode::memory, kTile);
  EXPECT_EQ(merged.rows(0), 3);
  EXPECT_EQ(merged.target(0, 1), 4);  // 200 and 202, by 50
}

// The ways in which configurations are stored, each with several chunks and read in both modes.
TEST_F(DatasetTest, ReadsWhatWasConvertedHoweverItIsStored) {
  const std::map<std::string, NpzFixture> fixtures = {{"byte_codes", many_configs(80'000, 60)},
                                                      {"short_codes", many_configs(40'000, 500)},
                                                      {"no_codes", never_equal_configs(6'000)}};
  for (const auto& [name, fixture] : fixtures) add(fixture, name);
  convert_all();
  for (const CacheMode mode : {CacheMode::memory, CacheMode::stream}) {
    const Dataset dataset = open(DuplicatesPolicy::keep, mode);
    EXPECT_EQ(dataset.in_memory(), mode == CacheMode::memory);
    ASSERT_EQ(dataset.size(), 3);
    for (int graph = 0; graph < 3; ++graph) {
      const std::string& name = dataset.graph(graph).name;
      const NpzFixture& fixture = fixtures.at(name);
      EXPECT_EQ(dataset.coded(graph), name != "no_codes");
      const Slate whole = dataset.slate(graph, all_rows(dataset, graph));
      EXPECT_EQ(features_of(dataset, whole), fixture.features) << name;
      CounterRng random(1);
      for (int repeat = 0; repeat < 20; ++repeat) {
        const Rows rows = ten_rows(random, 6'000);
        const Slate slate = dataset.slate(graph, rows);
        EXPECT_EQ(slate.configs, rows);
        EXPECT_EQ(features_of(dataset, slate), expected_features(fixture, slate)) << name;
      }
    }
  }
}

// Shards of any chunk size give the same slates: the size is the file's.
TEST_F(DatasetTest, ReadsChunksOfAnySize) {
  const NpzFixture fixture = many_configs(20'001, 60);  // 2 bytes of codes each
  add(fixture, "g");
  convert_all();
  const auto entry = list_graphs(folder_ / "shards", kLayout).at(0);
  for (const std::size_t chunk_bytes : {2, 1000, 16 << 10, 256 << 10}) {
    rewrite_codes(entry, chunk_bytes);
    const Dataset held = open(DuplicatesPolicy::keep, CacheMode::memory);
    DatasetOptions bounded = options();
    bounded.cache = CacheMode::stream;
    for (const std::uint64_t cache_bytes : {0, 20'000}) {
      bounded.cache_bytes = cache_bytes;
      const Dataset streamed = Dataset::open(bounded, pool_);
      CounterRng random(chunk_bytes);
      for (int repeat = 0; repeat < 20; ++repeat) {
        Rows rows = ten_rows(random, 20'001);
        rows.back() = 20'000;  // of the last chunk
        const Slate slate = streamed.slate(0, rows);
        EXPECT_EQ(slate.states, held.slate(0, rows).states);
        ASSERT_EQ(features_of(streamed, slate), expected_features(fixture, slate)) << chunk_bytes;
      }
    }
  }
}

TEST_F(DatasetTest, TakesMemoryWhenTheConfigurationsFit) {
  add(many_configs(5000, 60), "g");  // 2 nodes: 10,000 bytes of codes
  convert_all();
  DatasetOptions small = options(), large = options();
  small.cache_bytes = 9'999;
  large.cache_bytes = 10'000;
  const Dataset streamed = Dataset::open(small, pool_), held = Dataset::open(large, pool_);
  EXPECT_FALSE(streamed.in_memory());
  EXPECT_TRUE(held.in_memory());
  EXPECT_GE(held.resident_bytes(), streamed.resident_bytes() + 10'000);
  EXPECT_GT(streamed.resident_bytes(), 5000u * (8 + 4));  // run times and groups
}

TEST_F(DatasetTest, StreamsWithinTheBoundOfItsCache) {
  add(never_equal_configs(10'000), "g");  // 36 bytes a row, 360 kB
  convert_all();
  DatasetOptions bounded = options();
  bounded.cache = CacheMode::stream;
  bounded.cache_bytes = 150'000;
  const Dataset dataset = Dataset::open(bounded, pool_);
  const std::uint64_t before = dataset.resident_bytes();
  CounterRng random(3);
  for (int i = 0; i < 200; ++i)
    dataset.slate(0, Rows{static_cast<std::int64_t>(random.below(10'000))});
  EXPECT_GT(dataset.resident_bytes(), before);
  EXPECT_LE(dataset.resident_bytes(), before + bounded.cache_bytes);
}

TEST_F(DatasetTest, SelectsGraphsByPattern) {
  for (const std::string name : {"bert_a", "bert_b", "resnet_a", "unet"})
    add(NpzFixture::layout(), name);
  convert_all();
  DatasetOptions patterns = options();
  patterns.include = {"*_a", "unet"};
  patterns.exclude = {"res*"};
  const Dataset dataset = Dataset::open(patterns, pool_);
  ASSERT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.graph(0).name, "bert_a");
  EXPECT_EQ(dataset.graph(1).name, "unet");
}

TEST_F(DatasetTest, HasTheGraphsOfASecondSplitBehindThoseOfTheFirst) {
  for (const std::string name : {"bert_a", "resnet_a"}) add(NpzFixture::layout(), name);
  for (const std::string name : {"alexnet", "bert_a", "unet"})
    add(NpzFixture::layout(), name, "valid");
  convert_all();
  DatasetOptions both = options();
  both.second = SecondSplit{"valid", {}, {"unet"}};
  const Dataset dataset = Dataset::open(both, pool_), train = Dataset::open(options(), pool_);
  ASSERT_EQ(dataset.size(), 4);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"bert_a", "train"}, {"resnet_a", "train"}, {"alexnet", "valid"}, {"bert_a", "valid"}};
  for (int g = 0; g < 4; ++g) {
    EXPECT_EQ(dataset.graph(g).name, expected[g].first);
    EXPECT_EQ(dataset.entry(g).split, expected[g].second);
    EXPECT_GT(dataset.rows(g), 0);
  }
  EXPECT_EQ(dataset.options().splits(), "train+valid");
  EXPECT_NE(dataset.selection_hash(), train.selection_hash());
  both.second->exclude = {"*"};
  EXPECT_THAT(open_error(both), HasSubstr("none of the 3 graphs of layout:xla:random valid"));
}

TEST_F(DatasetTest, SaysWhatWasFilteredWhenNothingIsLeft) {
  add(NpzFixture::layout(), "bert");
  add(NpzFixture::layout(), "unet");
  convert_all();
  DatasetOptions nothing = options();
  nothing.include = {"resnet*"};
  EXPECT_THAT(open_error(nothing),
              HasSubstr("none of the 2 graphs of layout:xla:random train is left: included "
                        "'resnet*', excluded nothing"));
  nothing.include = {};
  nothing.exclude = {"bert", "u*"};
  EXPECT_THAT(open_error(nothing), HasSubstr("included all, excluded 'bert', 'u*'"));
  nothing = options();
  nothing.split = "test";
  EXPECT_THAT(open_error(nothing), HasSubstr("hold no graph of layout:xla:random test"));
  nothing.split = "training";
  EXPECT_THAT(open_error(nothing), HasSubstr("unknown split 'training'"));
  EXPECT_THROW(Dataset::open(options(kTile), pool_), DataError);  // never converted
}

TEST_F(DatasetTest, HashesWhatDecidesWhatARowIs) {
  add(NpzFixture::layout(), "bert");
  add(many_configs(100, 60), "resnet");
  add(NpzFixture::layout(), "bert", "valid");
  convert_all();
  DatasetOptions base = options();
  const std::uint64_t hash = Dataset::open(base, pool_).selection_hash();
  std::set<std::uint64_t> hashes{hash};
  for (const auto policy : {DuplicatesPolicy::min, DuplicatesPolicy::mean, DuplicatesPolicy::median,
                            DuplicatesPolicy::first}) {
    DatasetOptions other = base;
    other.duplicates = policy;
    hashes.insert(Dataset::open(other, pool_).selection_hash());
  }
  DatasetOptions fewer = base, valid = base;
  fewer.exclude = {"resnet"};
  valid.split = "valid";
  DatasetOptions limited = base, filtered = base;
  limited.max_configs = 20;
  filtered.least_entropy = 1e-9;
  for (const DatasetOptions& other : {fewer, valid, limited})
    hashes.insert(Dataset::open(other, pool_).selection_hash());
  hashes.insert(hash_selection(filtered, select_graphs(filtered)));
  EXPECT_EQ(hashes.size(), 9u);

  // Neither the cache nor how the graphs were named by patterns matters.
  DatasetOptions same = base;
  same.cache = CacheMode::stream;
  same.include = {"*e*"};
  same.exclude = {"unet"};
  EXPECT_EQ(Dataset::open(same, pool_).selection_hash(), hash);
  // The manifests alone say it, too.
  EXPECT_EQ(hash_selection(base, select_graphs(base)), hash);
  EXPECT_EQ(hash_selection(fewer, select_graphs(fewer)),
            Dataset::open(fewer, pool_).selection_hash());
}

TEST_F(DatasetTest, LeavesOutGraphsOfWhichTheEntropyFilterLeavesNothing) {
  NpzFixture good = many_configs(600, 300);
  CounterRng random(1);
  for (auto& time : good.runtime) time = 1000 + static_cast<std::int64_t>(random.below(100'000));
  add(many_configs(100, 60), "a");  // too few measurements
  add(good, "b");
  convert_all();
  DatasetOptions filtered = options();
  filtered.least_entropy = 0.01;
  const Dataset data = Dataset::open(filtered, pool_);
  ASSERT_EQ(data.size(), 1);
  EXPECT_EQ(data.graph(0).name, "b");
  EXPECT_THAT(data.left_out(), ::testing::ElementsAre("a"));
  EXPECT_GT(data.rows(0), 100);
  EXPECT_EQ(data.selection_hash(), hash_selection(filtered, select_graphs(filtered)));
  const std::vector<std::int64_t> first{0};
  EXPECT_EQ(data.slate(0, first).configs[0], data.config_of(0, 0));
  filtered.least_entropy = 1e6;
  EXPECT_THAT(open_error(filtered), HasSubstr("leaves no run time of the 2 graphs"));
}

TEST_F(DatasetTest, RefusesCodesWithoutAState) {
  add(NpzFixture::layout(), "g");
  convert_all();
  OpenGraph graph =
      OpenGraph::open(list_graphs(folder_ / "shards", kLayout).at(0), {DuplicatesPolicy::keep});
  ASSERT_TRUE(graph.coded);
  std::vector<std::int32_t> offsets(graph.states.offsets.begin(), graph.states.offsets.end());
  --offsets.back();  // as if the last state of the second node were lost
  graph.states.offsets = std::move(offsets);
  EXPECT_THAT(message_of<DataError>([&] { graph.read_chunk(0); }),
              HasSubstr("/config_codes: configuration 4 has code 3 of node 3, which has 3 states"));
}

TEST_F(DatasetTest, ServesManyThreads) {
  const NpzFixture fixture = never_equal_configs(10'000);
  add(fixture, "a");
  add(fixture, "b");
  convert_all();
  DatasetOptions bounded = options();
  bounded.cache = CacheMode::stream;
  bounded.cache_bytes = 200'000;
  const Dataset dataset = Dataset::open(bounded, pool_);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      CounterRng random(thread);
      for (int i = 0; i < 50; ++i) {
        const Rows rows = ten_rows(random, 10'000);
        const Slate slate = dataset.slate(static_cast<int>(random.below(2)), rows);
        wrong += features_of(dataset, slate) != expected_features(fixture, slate);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_F(DatasetTest, ReadsTheRealAlexNet) {
  const auto root = real_data_root();
  const std::string name = "layout/xla/random/valid/alexnet_train_batch_32.npz";
  if (!root || !std::filesystem::exists(*root / "npz" / name))
    GTEST_SKIP() << "the real data set is not on this machine (TPUDIST_REAL_DATA)";
  std::filesystem::create_directories(folder_ / "npz/layout/xla/random/valid");
  std::filesystem::copy_file(*root / "npz" / name, folder_ / "npz" / name);
  convert_all();
  DatasetOptions real = options();
  real.split = "valid";
  const Dataset dataset = Dataset::open(real, pool_);
  ASSERT_EQ(dataset.size(), 1);
  EXPECT_EQ(dataset.graph(0).nodes, 372);
  EXPECT_EQ(dataset.rows(0), 4957);
  EXPECT_EQ(dataset.states(0).offsets.size(), 27u);
  const Slate slate = dataset.slate(0, all_rows(dataset, 0));
  EXPECT_EQ(slate.states.size(), 4957u * 26);
  for (const double target : slate.targets) EXPECT_GT(target, 0);

  real.duplicates = DuplicatesPolicy::min;
  const Dataset merged = Dataset::open(real, pool_);
  EXPECT_LT(merged.rows(0), 4957);
  EXPECT_EQ(std::ranges::min(merged.slate(0, all_rows(merged, 0)).targets),
            std::ranges::min(slate.targets));
}

TEST(DatasetOfGraphs, NeedsTheConfigurationsInMemory) {
  std::vector<OpenGraph> graphs(1);
  graphs.front().entry.name = "module";
  graphs.front().entry.configs = 3;
  EXPECT_THROW(Dataset::of_graphs({}, std::move(graphs)), std::invalid_argument);
}

}  // namespace
}  // namespace tpudist::test
