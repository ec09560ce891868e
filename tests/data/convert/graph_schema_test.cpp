#include "data/convert/graph_schema.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "data/schema/feature_schema.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GraphSchemaTest : public ::testing::Test {
 protected:
  std::string error_of(const NpzFixture& fixture, std::string_view split = "train") {
    fixture.write(path_);
    return message_of<DataError>([&] {
      const NpzReader npz(path_);
      const GraphSizes sizes = read_graph_sizes(npz, fixture.collection());
      read_graph(npz, fixture.collection(), sizes);
      read_run_times(npz, fixture.collection(), split, sizes);
    });
  }

  TempDir folder_;
  const std::filesystem::path path_ = folder_ / "x.npz";
};

TEST_F(GraphSchemaTest, ReadsALayoutGraph) {
  const NpzFixture f = NpzFixture::layout();
  f.write(path_);
  const NpzReader npz(path_);
  const GraphSizes sizes = read_graph_sizes(npz, kLayout);
  EXPECT_EQ(sizes.nodes, 5);
  EXPECT_EQ(sizes.edges, 4);
  EXPECT_EQ(sizes.configs, 6);
  EXPECT_EQ(sizes.config_nodes, 2);
  EXPECT_EQ(sizes.config_values, 36);

  const Graph graph = read_graph(npz, kLayout, sizes);
  EXPECT_EQ(graph.name, "x");
  EXPECT_EQ(graph.node_features, f.node_feat);
  EXPECT_EQ(graph.opcodes, f.node_opcode);
  EXPECT_THAT(graph.edge_index, ElementsAre(1, 0, 2, 1, 3, 2, 4, 3));
  EXPECT_THAT(graph.config_nodes, ElementsAre(1, 3));
  EXPECT_THAT(graph.node_splits, ElementsAre(0, 2, 5));
  EXPECT_EQ(read_run_times(npz, kLayout, "train", sizes).runtime, f.runtime);
  EXPECT_EQ(open_config_features(npz, kLayout).read_floats(), f.features);
}

TEST_F(GraphSchemaTest, ReadsATileGraph) {
  const NpzFixture f = NpzFixture::make_tile();
  f.write(path_);
  const NpzReader npz(path_);
  const GraphSizes sizes = read_graph_sizes(npz, kTile);
  EXPECT_EQ(sizes.config_nodes, 0);
  EXPECT_EQ(sizes.config_values, kTileConfigFeatures);
  EXPECT_TRUE(read_graph(npz, kTile, sizes).config_nodes.empty());
  EXPECT_EQ(read_run_times(npz, kTile, "valid", sizes).normalizer, f.normalizers);
}

TEST_F(GraphSchemaTest, NamesAMissingArray) {
  for (const char* name : {"node_feat", "node_opcode", "edge_index", "node_config_ids",
                           "node_config_feat", "config_runtime"}) {
    NpzFixture f = NpzFixture::layout();
    f.without = name;
    EXPECT_THAT(error_of(f), HasSubstr("x.npz: array " + std::string(name) + " is missing"));
  }
  NpzFixture f = NpzFixture::layout();
  f.without = "node_splits";
  EXPECT_EQ(error_of(f), "");
}

TEST_F(GraphSchemaTest, NamesAWrongShape) {
  NpzFixture f = NpzFixture::layout();
  f.node_opcode.push_back(1);
  EXPECT_THAT(error_of(f), HasSubstr("node_opcode has shape [6] but must have [5]"));
  f = NpzFixture::layout();
  f.runtime.pop_back();
  EXPECT_THAT(error_of(f), HasSubstr("config_runtime has 5 run times, but node_config_feat has 6"));
  f = NpzFixture::make_tile();
  f.normalizers.push_back(1);
  EXPECT_THAT(error_of(f), HasSubstr("config_runtime_normalizers has shape [5]"));
}

TEST_F(GraphSchemaTest, NamesTheValueOutOfRange) {
  NpzFixture f = NpzFixture::layout();
  f.config_ids[1] = 400;
  EXPECT_THAT(error_of(f),
              HasSubstr("x.npz: node_config_ids[1] = 400 is not a node (the graph has 5)"));
  f.config_ids[1] = 1;
  EXPECT_THAT(error_of(f), HasSubstr("node_config_ids[1] = 1 repeats node_config_ids[0]"));
  f = NpzFixture::layout();
  f.edge_index[5] = -1;
  EXPECT_THAT(error_of(f), HasSubstr("edge_index[2, 1] = -1 is not a node"));
  f = NpzFixture::layout();
  f.node_opcode[2] = kOpcodes;
  EXPECT_THAT(error_of(f), HasSubstr("node_opcode[2] = 120 is not an opcode (0 to 119)"));
  f = NpzFixture::layout();
  f.splits[1] = 6;
  EXPECT_THAT(error_of(f), HasSubstr("node_splits[0, 1] = 6"));
  f.splits.assign(100, 0);
  EXPECT_THAT(error_of(f), HasSubstr("node_splits has 100 splits of 5 nodes"));
  f = NpzFixture::layout();
  f.node_feat[141] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error_of(f), HasSubstr("node_feat[1, 1] is nan"));
  f.node_feat[141] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(error_of(f), HasSubstr("node_feat[1, 1] is -inf"));
}

TEST_F(GraphSchemaTest, RunTimesOfZeroBelongToTestSplitsOnly) {
  NpzFixture f = NpzFixture::layout();
  f.runtime[3] = 0;
  EXPECT_THAT(error_of(f, "train"), HasSubstr("config_runtime[3] = 0 is not a run time"));
  EXPECT_THAT(error_of(f, "valid"), HasSubstr("config_runtime[3] = 0 is not a run time"));
  EXPECT_EQ(error_of(f, "test"), "");
  f.runtime[3] = -1;
  EXPECT_THAT(error_of(f, "test"), HasSubstr("config_runtime[3] = -1 is negative"));
  f = NpzFixture::make_tile();
  f.normalizers[2] = 0;
  EXPECT_THAT(error_of(f), HasSubstr("config_runtime_normalizers[2] = 0 is not positive"));
}

TEST_F(GraphSchemaTest, RefusesEmptyAndHugeGraphs) {
  NpzFixture f = NpzFixture::layout();
  f.config_ids.clear();
  f.features.clear();
  EXPECT_THAT(error_of(f), HasSubstr("has no configurable nodes"));
  f = NpzFixture::layout();
  f.c = 0;
  f.runtime.clear();
  f.features.clear();
  EXPECT_THAT(error_of(f), HasSubstr("has no configurations"));

  // More configurations than int32 can count; only the zip directory and the header say so.
  NpzWriter npz(path_);
  npz.add_streamed<std::uint8_t>("node_config_feat", {kMaxConfigs + 1}, [](auto, auto rows) {
    for (auto& value : rows) value = 1;
  });
  const NpzFixture g = NpzFixture::layout();
  npz.add("node_feat", {5, kNodeFeatures}, g.node_feat);
  npz.add("node_opcode", {5}, g.node_opcode);
  npz.add("edge_index", {4, 2}, g.edge_index);
  npz.finish();
  const NpzReader reader(path_);
  EXPECT_THROW(read_graph_sizes(reader, kLayout), DataError);
}

}  // namespace
}  // namespace tpudist::test
