#include "data/convert/graph_converter.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "data/convert/verifier.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/data/shards/test_shards.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Converts one fixture to a shard and reads it back.
class GraphConverterTest : public ::testing::Test {
 protected:
  GraphSummary convert(const NpzFixture& fixture, ConfigEncoder::Limits limits = {}) {
    const Collection& collection = fixture.collection();
    fixture.write(npz_, {.deflate_level = 1});
    {
      ShardWriter shard(shard_, collection, "train", pool_);
      const NpzReader npz(npz_);
      convert_graph(npz, collection, "train", {"a/x.npz", 5, 7}, shard, limits);
      shard.close();
    }
    const ShardSummary shard = summarize_shard(shard_);
    EXPECT_EQ(shard.graphs.size(), 1u);
    verify_graph(shard_, shard.graphs[0], collection, "train", npz_);
    return shard.graphs[0];
  }

  GraphReader reader(const GraphSummary& g) const { return GraphReader({g, "train", shard_}); }

  std::vector<float> features(const GraphSummary& g) const { return config_features(reader(g), g); }

  // `count` configurations of 2 nodes whose vectors are made by value(configuration, node).
  static NpzFixture many(std::int64_t count, const std::function<float(std::int64_t, int)>& value) {
    NpzFixture f = NpzFixture::layout();
    f.c = count;
    f.runtime.assign(static_cast<std::size_t>(count), 1000);
    f.features.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      for (int j = 0; j < 2; ++j) {
        for (int k = 0; k < 17; ++k) f.features.push_back(static_cast<float>(k % 5));
        f.features.push_back(value(i, j));
      }
    }
    return f;
  }

  TempDir folder_;
  const std::filesystem::path npz_ = folder_ / "x.npz", shard_ = folder_ / "shard.h5";
  ThreadPool pool_{2};
};

TEST_F(GraphConverterTest, LayoutRoundTrip) {
  const NpzFixture f = NpzFixture::layout();
  const GraphSummary g = convert(f);
  EXPECT_EQ(g.name, "x");
  EXPECT_EQ(g.source.path, "a/x.npz");
  EXPECT_EQ(g.source.bytes, 5u);
  EXPECT_EQ(g.source.hash, 7u);
  EXPECT_TRUE(g.coded);
  EXPECT_EQ(g.config_type, "u8");
  EXPECT_EQ(g.distinct_configs, 4);

  const GraphReader from = reader(g);
  const Graph graph = from.read_graph();
  EXPECT_EQ(graph.node_features, f.node_feat);
  EXPECT_EQ(graph.opcodes, f.node_opcode);
  EXPECT_THAT(graph.edge_index, ElementsAre(1, 0, 2, 1, 3, 2, 4, 3));
  EXPECT_THAT(graph.config_nodes, ElementsAre(1, 3));
  EXPECT_THAT(graph.node_splits, ElementsAre(0, 2, 5));
  const RunTimes times = from.read_run_times();
  EXPECT_EQ(times.runtime, f.runtime);
  EXPECT_TRUE(times.normalizer.empty());
  EXPECT_THAT(times.group, ElementsAre(0, 1, 0, 2, 3, 0));
  EXPECT_EQ(from.code_bytes(), 1);
  EXPECT_EQ(std::get<0>(from.read_codes(1, 2)), (std::vector<std::uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(features(g), f.features);
}

TEST_F(GraphConverterTest, TileRoundTrip) {
  const NpzFixture f = NpzFixture::make_tile();
  const GraphSummary g = convert(f);
  EXPECT_FALSE(g.coded);
  EXPECT_EQ(g.config_type, "i8");
  const GraphReader from = reader(g);
  EXPECT_EQ(from.read_config_features(0, 4), f.features);
  EXPECT_EQ(from.read_config_features(2, 1),
            std::vector<float>(f.features.begin() + 48, f.features.begin() + 72));
  const RunTimes times = from.read_run_times();
  EXPECT_EQ(times.normalizer, f.normalizers);
  EXPECT_THAT(times.group, ElementsAre(0, 1, 2, 1));
  EXPECT_EQ(times.target(1), 4.0);
  EXPECT_THROW(from.read_states(), std::logic_error);
}

TEST_F(GraphConverterTest, WidensCodesPast256StatesOfANode) {
  const auto states = [](std::int64_t count) {
    return many(5000,
                [=](std::int64_t i, int j) { return static_cast<float>(j == 0 ? i % count : 1); });
  };
  EXPECT_EQ(convert(states(256)).config_type, "u8");
  const NpzFixture f = states(300);
  const GraphSummary g = convert(f);
  EXPECT_EQ(g.config_type, "u16");
  EXPECT_EQ(g.states, 301);
  EXPECT_EQ(g.max_states_per_node, 300);
  EXPECT_EQ(g.distinct_configs, 300);
  EXPECT_EQ(reader(g).code_bytes(), 2);
  EXPECT_EQ(features(g), f.features);
}

TEST_F(GraphConverterTest, StoresFeaturesWhereConfigurationsDoNotRepeat) {
  const auto unique = [](float step) {
    return many(20000, [=](std::int64_t i, int j) { return static_cast<float>(2 * i + j) * step; });
  };
  for (const auto& [step, type] : {std::pair{1.0f, "i32"}, {0.25f, "f32"}}) {
    const NpzFixture f = unique(step);
    const GraphSummary g = convert(f);
    EXPECT_FALSE(g.coded);
    EXPECT_EQ(g.config_type, type);
    EXPECT_EQ(g.distinct_configs, 20000);
    EXPECT_EQ(features(g), f.features);
  }
  const NpzFixture f =
      many(20000, [](std::int64_t i, int j) { return static_cast<float>(i + j - 10000); });
  EXPECT_EQ(convert(f).config_type, "i16");
}

TEST_F(GraphConverterTest, StoresFeaturesWhereANodeHasMoreStatesThanCodesCount) {
  const NpzFixture f =
      many(131200, [](std::int64_t i, int j) { return static_cast<float>(j == 0 ? i / 2 : 1); });
  const GraphSummary g = convert(f);
  EXPECT_FALSE(g.coded);
  EXPECT_EQ(g.config_type, "i32");
  EXPECT_EQ(features(g), f.features);
}

TEST_F(GraphConverterTest, ASingleConfigurationIsNotCoded) {
  const GraphSummary g = convert(many(1, [](std::int64_t, int) { return 2.0f; }));
  EXPECT_FALSE(g.coded);
  EXPECT_EQ(g.config_type, "i8");
}

TEST_F(GraphConverterTest, KeepsNegativeZeroApart) {
  const NpzFixture f =
      many(100, [](std::int64_t i, int) { return std::copysign(0.0f, i % 2 == 0 ? 1.0f : -1.0f); });
  const GraphSummary g = convert(f);
  EXPECT_TRUE(g.coded);
  EXPECT_EQ(g.distinct_configs, 2);
  const auto back = features(g);
  EXPECT_EQ(std::memcmp(back.data(), f.features.data(), back.size() * sizeof(float)), 0);
}

TEST_F(GraphConverterTest, GivesUpWhenTheDictionaryGrowsTooLarge) {
  const NpzFixture f = many(2000, [](std::int64_t i, int) { return static_cast<float>(i % 100); });
  EXPECT_TRUE(convert(f).coded);
  EXPECT_FALSE(convert(f, {.dictionary_bytes = 5000}).coded);
}

TEST_F(GraphConverterTest, NamesANotFiniteFeatureInEveryWayOfStoring) {
  const auto error_of = [&](const NpzFixture& fixture) {
    return message_of<DataError>([&] { convert(fixture); });
  };
  NpzFixture coded = many(3000, [](std::int64_t i, int) { return static_cast<float>(i % 9); });
  coded.features[(2500 * 2 + 1) * kLayoutConfigFeatures + 4] = NAN;
  EXPECT_THAT(error_of(coded), HasSubstr("node_config_feat[2500, 1, 4] is nan"));
  NpzFixture whole = many(20000, [](std::int64_t i, int) { return static_cast<float>(i); });
  whole.features[(19000 * 2 + 1) * kLayoutConfigFeatures + 4] = INFINITY;
  EXPECT_THAT(error_of(whole), HasSubstr("node_config_feat[19000, 1, 4] is inf"));
  NpzFixture real = many(20000, [](std::int64_t i, int) { return static_cast<float>(i) + 0.5f; });
  real.features[(19000 * 2 + 1) * kLayoutConfigFeatures + 4] = NAN;
  EXPECT_THAT(error_of(real), HasSubstr("node_config_feat[19000, 1, 4] is nan"));
}

TEST_F(GraphConverterTest, ABadFileLeavesNoGroupBehind) {
  NpzFixture::layout().write(folder_ / "good.npz");
  NpzFixture bad = NpzFixture::layout();
  bad.features.back() = NAN;
  bad.write(folder_ / "bad.npz");
  {
    ShardWriter shard(shard_, kLayout, "train", pool_);
    for (const char* name : {"bad.npz", "good.npz", "bad.npz"}) {
      message_of<DataError>([&] {
        convert_graph(NpzReader(folder_ / name), kLayout, "train", {name, 0, 0}, shard);
      });
    }
    shard.close();
  }
  const ShardSummary shard = summarize_shard(shard_);
  ASSERT_EQ(shard.graphs.size(), 1u);
  EXPECT_EQ(shard.graphs[0].name, "good");
  EXPECT_EQ(shard.graphs[0].group, "/graphs/000000");
}

// Every type of number gives the datasets of the float32 file, bit for bit.
TEST_F(GraphConverterTest, TakesFeaturesOfAnyType) {
  for (const bool tile : {false, true}) {
    NpzFixture fixture = tile ? NpzFixture::make_tile() : NpzFixture::layout();
    for (const char* type : {"<f4", "<f2", "<f8", "|i1", "<i2", "<i4", "<i8"}) {
      const bool fractions = type[1] == 'f';
      for (std::size_t i = 0; i < fixture.node_feat.size(); ++i) {
        fixture.node_feat[i] = static_cast<float>(i % 50) * (fractions ? 0.5f : -1.0f);
      }
      fixture.node_type = fixture.feature_type = type;
      const GraphSummary graph = convert(fixture);
      EXPECT_EQ(features(graph), fixture.features) << type;
      EXPECT_EQ(reader(graph).read_graph().node_features, fixture.node_feat) << type;
      EXPECT_EQ(graph.coded, !tile) << type;
      EXPECT_EQ(graph.config_type, tile ? "i8" : "u8") << type;
    }
  }
}

TEST_F(GraphConverterTest, NamesAFeatureThatFloat32DoesNotHold) {
  const NpzFixture fixture = NpzFixture::layout();
  NpzWriter npz(npz_);
  npz.add("node_feat", {5, kNodeFeatures}, fixture.node_feat);
  npz.add("node_opcode", {5}, fixture.node_opcode);
  npz.add("edge_index", {4, 2}, fixture.edge_index);
  npz.add("config_runtime", {6}, fixture.runtime);
  npz.add("node_config_ids", {2}, fixture.config_ids);
  std::vector<std::int32_t> features(6 * 2 * kLayoutConfigFeatures, 1);
  features[(3 * 2 + 1) * kLayoutConfigFeatures + 5] = 16777217;
  npz.add("node_config_feat", {6, 2, kLayoutConfigFeatures}, features);
  npz.finish();
  ShardWriter shard(shard_, kLayout, "train", pool_);
  EXPECT_THAT(message_of<DataError>([&] {
                convert_graph(NpzReader(npz_), kLayout, "train", {"a/x.npz", 5, 7}, shard, {});
              }),
              HasSubstr("x.npz: node_config_feat[3, 1, 5] = 16777217 is not exact"));
}

}  // namespace
}  // namespace tpudist::test
