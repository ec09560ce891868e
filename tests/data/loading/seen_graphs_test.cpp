#include "data/loading/seen_graphs.hpp"

#include <gmock/gmock.h>

#include <set>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "data/hlo/hlo_features.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Graphs of two features.
SeenGraphs seen_of(std::vector<std::uint8_t> opcodes, std::vector<float> features,
                   std::int64_t config_nodes = 1) {
  SeenGraphs seen;
  seen.add(std::ssize(opcodes), config_nodes, opcodes, features);
  return seen;
}

TEST(SeenGraphs, KeepsOpcodesAndRanges) {
  SeenGraphs seen = seen_of({3, 7}, {1, -5, 2, 0.25});
  const std::vector<std::uint8_t> opcodes{7, 7, 9};
  const std::vector<float> features{0, 0, 3, 1e30f, 1, 1};
  seen.add(30, 2, opcodes, features);
  EXPECT_EQ(seen.graphs, 2);
  EXPECT_THAT(seen.opcodes, ElementsAre(3, 7, 9));
  EXPECT_EQ(seen.nodes, (Range<std::int64_t>{2, 30}));
  EXPECT_EQ(seen.config_nodes, (Range<std::int64_t>{1, 2}));
  EXPECT_THAT(seen.features, ElementsAre(Range<float>{0, 3}, Range<float>{-5, 1e30f}));
}

TEST(SeenGraphs, SaysWhatLiesOutside) {
  const SeenGraphs seen = seen_of({3, 7, 9}, {0, -5, 1, 0, 2, 4}, 4);
  EXPECT_EQ(unseen_text(seen, seen, kLayoutSchema), "");
  EXPECT_FALSE(unseen_parts(seen, seen).any());
  const SeenGraphs edge = seen_of({3, 3, 9}, {0, -5, 2, 4, 1, 1}, 4);
  EXPECT_EQ(unseen_text(edge, seen, kLayoutSchema), "");
  const SeenGraphs far = seen_of({0, 35}, {0, 5, 2, 0});
  const UnseenParts unseen = unseen_parts(far, seen);
  EXPECT_THAT(unseen.opcodes, ElementsAre(0, 35));
  EXPECT_THAT(unseen.features, ElementsAre(1));
  EXPECT_TRUE(unseen.nodes && unseen.config_nodes);
  EXPECT_EQ(unseen_text(far, seen, kTileSchema),
            "2 opcodes never seen (unknown, dynamic-slice), 1 of 2 node features outside of their "
            "range, 2 nodes (seen: 3), 1 configurable nodes (seen: 4)");
  FeatureSchema own = kLayoutSchema;
  own.opcodes = 36;
  EXPECT_THAT(unseen_text(far, seen, own),
              ::testing::StartsWith("2 opcodes never seen (opcode 0, opcode 35), "));
  EXPECT_THROW(unseen_parts(seen_of({3}, {1, 2, 3}), seen), DataError);
}

GraphEntry entry(const char* name, std::uint64_t hash, std::int64_t nodes = 9) {
  GraphEntry graph;
  graph.name = name;
  graph.source = {std::string(name) + ".npz", 1, hash};
  graph.nodes = nodes;
  return graph;
}

// Data of a user's own may have a `0` in each split.
TEST(TrainedOn, KnowsGraphsByTheirContentAndByNameAndSize) {
  TrainedOn trained;
  trained.add(entry("layout:xla:random:0", 7), {true, false});
  EXPECT_TRUE(trained.knows(entry("0", 7), 0));
  EXPECT_FALSE(trained.knows(entry("0", 7), 1));
  EXPECT_FALSE(trained.knows(entry("0", 7), 2));
  EXPECT_TRUE(trained.knows(entry("layout:xla:default:0", 8), 0));  // with other configurations
  EXPECT_TRUE(trained.knows(entry("other", 7, 5), 0));              // a copy
  EXPECT_FALSE(trained.knows(entry("0", 8, 5), 0));                 // another graph of this name
  GraphEntry module = entry("a", 3), beside = entry("b", 3);
  module.source.path = beside.source.path = "tuning.pb";  // with many modules
  trained.add(module, {true});
  EXPECT_TRUE(trained.knows(module, 0));
  EXPECT_FALSE(trained.knows(beside, 0));
}

TEST(SeenGraphs, IsReadBackFromItsFile) {
  const TempDir folder;
  SeenGraphs seen = seen_of({3, 7}, {0.1f, -5, 3.4e38f, 1e-30f});
  seen.reduction = "config_neighbours";
  seen.trained_on.add(entry("layout:xla:random:bert\u2028", ~std::uint64_t{0}), {true, false});
  const std::size_t keys = seen.trained_on.size();
  seen.trained_on.add(entry("unet", 2), {false, false});  // nobody was trained on it
  EXPECT_EQ(seen.trained_on.size(), keys);
  write_file_atomically(folder / "seen.json", seen_graphs_text(seen));
  EXPECT_EQ(read_seen_graphs(folder / "seen.json"), seen);
  const std::string whole = seen_graphs_text(seen);
  for (std::size_t cut = 0; cut + 1 < whole.size(); ++cut) {
    write_file_atomically(folder / "cut.json", whole.substr(0, cut));
    EXPECT_THAT(message_of<DataError>([&] { read_seen_graphs(folder / "cut.json"); }),
                HasSubstr("cut.json: is damaged"));
  }
  write_file_atomically(folder / "cut.json", "[1]");
  EXPECT_THROW(read_seen_graphs(folder / "cut.json"), DataError);
}

TEST(FeatureNames, AreDistinctOneForEachColumn) {
  const std::vector<std::string> names = node_feature_names();
  EXPECT_EQ(names.size(), 140u);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names[26], "shape_dimensions_5");
  EXPECT_EQ(names[30], "parameter_number");
  EXPECT_EQ(names[93], "convolution_input_batch_dim");
  EXPECT_EQ(names[107], "feature_group_count");
  EXPECT_EQ(names[133], "is_stable");
  EXPECT_EQ(names[139], "layout_minor_to_major_5");
}

TEST(OpcodeNames, AreThoseOfTheirNumbers) {
  for (const char* name : {"abs", "dynamic-slice", "reshape", "stochastic-convert"})
    EXPECT_EQ(opcode_name(opcode_number(name)), name);
  EXPECT_EQ(opcode_name(0), "unknown");
  EXPECT_EQ(opcode_name(200), "unknown");
}

}  // namespace
}  // namespace tpudist::test
