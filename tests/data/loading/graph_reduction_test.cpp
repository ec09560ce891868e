#include "data/loading/graph_reduction.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/loading/metis_segments.hpp"
#include "data/loading/module_file.hpp"
#include "data/schema/feature_schema.hpp"
#include "tests/support/contracted_edges.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/real_data.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Direction = GraphReduction::Direction;
using Edges = GraphReduction::Edges;
using Sample = GraphReduction::Sample;

// Features tell which node a row was: its first is the node's number.
Graph graph_of(std::int64_t nodes, std::vector<std::int32_t> edges,
               std::vector<std::int32_t> config_nodes) {
  Graph graph;
  graph.name = "small";
  graph.nodes = nodes;
  graph.edges = static_cast<std::int64_t>(edges.size() / 2);
  graph.edge_index = std::move(edges);
  graph.config_nodes = std::move(config_nodes);
  graph.node_splits = {0, nodes};
  std::vector<float> features(static_cast<std::size_t>(nodes * kNodeFeatures));
  std::vector<std::uint8_t> opcodes;
  for (std::int64_t node = 0; node < nodes; ++node) {
    features[node * kNodeFeatures] = static_cast<float>(node);
    opcodes.push_back(static_cast<std::uint8_t>(10 + node));
  }
  graph.node_features = std::move(features);
  graph.opcodes = std::move(opcodes);
  return graph;
}

// A chain 0 <- 1 <- ... <- 6, each consuming the one before, with a skip from 4 to 2. Node 3 is
// configurable.
Graph chain() {
  return graph_of(7, {1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5, 4, 2}, {3});
}

GraphReduction reduction(int hops, Direction direction, Edges edges) {
  return {.wanted = true, .hops = hops, .direction = direction, .edges = edges};
}

// The numbers that the kept nodes have in the whole graph.
std::vector<int> kept(const Graph& graph) {
  std::vector<int> nodes;
  for (std::size_t at = 0; at < graph.node_features.size(); at += kNodeFeatures)
    nodes.push_back(static_cast<int>(graph.node_features[at]));
  return nodes;
}

TEST(GraphReduction, KeepsConfigurableNodesAndTheirNeighbours) {
  const Graph graph = reduced_graph(chain(), reduction(1, Direction::both, Edges::touching_config));
  EXPECT_EQ(graph.name, "small");
  EXPECT_EQ(graph.nodes, 3);
  EXPECT_EQ(graph.edges, 2);
  EXPECT_THAT(kept(graph), ElementsAre(2, 3, 4));
  EXPECT_THAT(graph.opcodes, ElementsAre(12, 13, 14));
  EXPECT_THAT(graph.edge_index, ElementsAre(1, 0, 2, 1));  // 4 -> 2 touches no configurable node
  EXPECT_THAT(graph.config_nodes, ElementsAre(1));
  EXPECT_TRUE(graph.node_splits.empty());
}

TEST(GraphReduction, KeepsAllEdgesBetweenKeptNodesWhenAsked) {
  const Graph graph = reduced_graph(chain(), reduction(1, Direction::both, Edges::all));
  EXPECT_THAT(graph.edge_index, ElementsAre(1, 0, 2, 1, 2, 0));
}

TEST(GraphReduction, WalksOneWayOrBoth) {
  const auto nodes = [](int hops, Direction direction) {
    return kept(reduced_graph(chain(), reduction(hops, direction, Edges::all)));
  };
  EXPECT_THAT(nodes(1, Direction::to_producer), ElementsAre(2, 3));
  EXPECT_THAT(nodes(2, Direction::to_producer), ElementsAre(1, 2, 3));
  EXPECT_THAT(nodes(2, Direction::to_consumer), ElementsAre(3, 4, 5));
  EXPECT_THAT(nodes(2, Direction::both), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(nodes(100, Direction::both), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(GraphReduction, KeepsTheOrderOfConfigurableNodes) {
  const Graph graph = reduced_graph(graph_of(6, {1, 0, 3, 2, 5, 4}, {5, 1}),
                                    reduction(1, Direction::both, Edges::all));
  EXPECT_THAT(kept(graph), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(graph.config_nodes, ElementsAre(3, 1));
}

// Against a search from each configurable node by itself.
RC_GTEST_PROP(GraphReduction, KeepsWhatLiesWithinTheHops, (std::uint64_t key)) {
  CounterRng rng(key);
  const auto nodes = static_cast<std::int32_t>(2 + rng.below(20));
  std::vector<std::int32_t> edges, config_nodes;
  for (std::uint64_t e = rng.below(30); e > 0; --e) {
    edges.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(nodes))));
    edges.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(nodes))));
  }
  for (std::int32_t node = 0; node < nodes; node += 1 + static_cast<std::int32_t>(rng.below(8)))
    config_nodes.push_back(node);
  const int hops = static_cast<int>(1 + rng.below(3));
  const Direction directions[] = {Direction::both, Direction::to_producer, Direction::to_consumer};
  const Direction direction = directions[rng.below(3)];

  std::set<int> expected;
  for (const std::int32_t from : config_nodes) {
    std::set<int> ring = {from};
    for (int hop = 0; hop <= hops; ++hop) {
      expected.insert(ring.begin(), ring.end());
      std::set<int> next;
      for (std::size_t e = 0; e < edges.size(); e += 2) {
        if (direction != Direction::to_consumer && ring.contains(edges[e]))
          next.insert(edges[e + 1]);
        if (direction != Direction::to_producer && ring.contains(edges[e + 1]))
          next.insert(edges[e]);
      }
      ring = next;
    }
  }
  const Graph graph =
      reduced_graph(graph_of(nodes, edges, config_nodes), reduction(hops, direction, Edges::all));
  RC_ASSERT(kept(graph) == std::vector<int>(expected.begin(), expected.end()));
  std::int64_t between = 0;
  for (std::size_t e = 0; e < edges.size(); e += 2)
    between += expected.contains(edges[e]) && expected.contains(edges[e + 1]);
  RC_ASSERT(graph.edges == between);
  RC_ASSERT(graph.opcodes.size() == expected.size());
}

TEST(GraphReduction, LeavesGraphsAsTheyAreByDefault) {
  EXPECT_EQ(reduced_graph(chain(), {}).nodes, 7);
  EXPECT_EQ(to_text(GraphReduction{}), "none");
}

TEST(GraphReduction, RefusesAGraphWithoutConfigurableNodes) {
  EXPECT_THAT(message_of<DataError>([&] {
                reduced_graph(graph_of(3, {1, 0}, {}), {.wanted = true});
              }),
              HasSubstr("small: has no configurable node"));
}

GraphReduction drawing(std::int64_t most, Sample sample, double config_weight = 1) {
  return {.max_nodes = most, .sample = sample, .config_weight = config_weight};
}

TEST(DrawnNodes, AreThoseOfASecondWriting) {
  std::ifstream file(source_folder() / "tests/data/loading/golden_drawn_nodes.json");
  const auto all = nlohmann::json::parse(file);
  ASSERT_EQ(all.size(), 108u);
  for (const auto& golden : all) {
    const Graph graph = graph_of(golden.at("nodes"), {}, golden.at("config_nodes"));
    const Sample sample = golden.at("sample") == "window" ? Sample::window : Sample::random;
    EXPECT_EQ(
        drawn_nodes(graph, drawing(golden.at("max_nodes"), sample, golden.at("config_weight")),
                    golden.at("key")),
        golden.at("drawn").get<std::vector<std::int32_t>>())
        << golden;
  }
}

RC_GTEST_PROP(DrawnNodes, AreSoManyAscendingAndOneIsConfigurable, ()) {
  const auto nodes = *rc::gen::inRange<std::int32_t>(2, 60);
  const auto most = *rc::gen::inRange<std::int32_t>(1, nodes);
  const auto config = *rc::gen::nonEmpty(
      rc::gen::unique<std::vector<std::int32_t>>(rc::gen::inRange<std::int32_t>(0, nodes)));
  const Graph graph = graph_of(nodes, {}, std::vector(config));
  const auto key = *rc::gen::arbitrary<std::uint64_t>();
  for (const Sample sample : {Sample::window, Sample::random}) {
    const std::vector<std::int32_t> drawn = drawn_nodes(graph, drawing(most, sample), key);
    RC_ASSERT(std::ssize(drawn) == most);
    RC_ASSERT(std::ranges::is_sorted(drawn));
    RC_ASSERT(std::set(drawn.begin(), drawn.end()).size() == drawn.size());
    RC_ASSERT(drawn.front() >= 0 && drawn.back() < nodes);
    RC_ASSERT(std::ranges::any_of(
        config, [&](std::int32_t node) { return std::ranges::count(drawn, node) > 0; }));
    if (sample == Sample::window) RC_ASSERT(drawn.back() - drawn.front() == most - 1);
  }
}

// Of two nodes of ten, of which five are configurable with weight 4: the first is configurable
// with probability 20 / 25, the second then with 16 / 21, else with 20 / 24, and else it becomes so.
TEST(DrawnNodes, AreDrawnByWeightAndFromAllWindows) {
  const Graph graph = graph_of(10, {}, {0, 1, 2, 3, 4}), one = graph_of(10, {}, {2});
  constexpr int kDraws = 4'000;
  int configurable = 0;
  std::set<std::int32_t> windows;
  for (std::uint64_t key = 0; key < kDraws; ++key) {
    for (const std::int32_t node : drawn_nodes(graph, drawing(2, Sample::random, 4), key))
      configurable += node < 5;
    windows.insert(drawn_nodes(one, drawing(3, Sample::window), key).front());
  }
  EXPECT_NEAR(configurable / double{kDraws}, 0.8 + 0.8 * 16 / 21 + 0.2, 0.04);
  EXPECT_THAT(windows, ElementsAre(0, 1, 2));
}

std::vector<std::pair<int, int>> pairs(std::span<const std::int32_t> edges) {
  std::vector<std::pair<int, int>> sorted;
  for (std::size_t e = 0; e < edges.size(); e += 2) sorted.emplace_back(edges[e], edges[e + 1]);
  std::ranges::sort(sorted);
  return sorted;
}

// A chain with a skip around node 3, of which the ends and node 3 are configurable.
TEST(ConfigEdges, ArePathsThatMeetNoOtherConfigurableNode) {
  Graph graph = chain();
  graph.config_nodes = std::vector<std::int32_t>{6, 0, 3};
  EXPECT_THAT(pairs(config_edges_of(graph)),
              ElementsAre(std::pair(3, 0), std::pair(6, 0), std::pair(6, 3)));
  graph.config_nodes = std::vector<std::int32_t>{4, 3};
  EXPECT_THAT(pairs(config_edges_of(graph)), ElementsAre(std::pair(4, 3)));
  graph.config_nodes = std::vector<std::int32_t>{3};
  EXPECT_TRUE(config_edges_of(graph).empty());
}

RC_GTEST_PROP(ConfigEdges, AreThoseOfTheContractedGraph, (std::uint64_t seed)) {
  CounterRng random(seed);
  const auto nodes = static_cast<std::int64_t>(2 + random.below(20));
  std::vector<std::int32_t> edges, config_nodes;
  for (std::uint64_t e = 0; e < 2 * static_cast<std::uint64_t>(nodes); ++e) {
    edges.push_back(static_cast<std::int32_t>(random.below(nodes)));
    edges.push_back(static_cast<std::int32_t>(random.below(nodes)));
    // Mostly without cycles, as programs are.
    if (random.below(20) && edges.back() > edges[edges.size() - 2])
      std::swap(edges.back(), edges[edges.size() - 2]);
  }
  for (std::int32_t node = 0; node < nodes; ++node)
    if (random.below(3) == 0) config_nodes.push_back(node);
  const Graph graph = graph_of(nodes, edges, config_nodes);
  const auto found = pairs(config_edges_of(graph));
  RC_ASSERT(found == pairs(contracted_edges(nodes, edges, config_nodes)));

  // A reduction keeps them all, and a part those between its nodes.
  if (config_nodes.empty()) return;
  const Graph reduced = reduced_graph(graph, {.wanted = true, .hops = 1, .config_edges = true});
  RC_ASSERT(std::ssize(reduced.config_edges) == 2 * std::ssize(found));
  const std::vector<int> numbers = kept(reduced);
  std::vector<std::int32_t> whole;
  for (const std::int32_t end : reduced.config_edges) whole.push_back(numbers[end]);
  RC_ASSERT(pairs(whole) == found);
}

TEST(ConfigEdges, AreCutWithTheGraph) {
  Graph graph = chain();
  graph.config_nodes = std::vector<std::int32_t>{0, 3, 6};
  const Graph whole = reduced_graph(graph, {.config_edges = true});
  EXPECT_EQ(whole.nodes, 7);
  EXPECT_THAT(pairs(whole.config_edges),
              ElementsAre(std::pair(3, 0), std::pair(6, 0), std::pair(6, 3)));
  const GraphPart part = part_of(whole, {0, 2, 3, 4}, whole.edge_index);
  EXPECT_THAT(part.config_edges, ElementsAre(2, 0));  // 3 to 0
  const Graph cut = reduced_graph(
      graph, {.segments = SegmentCut::consecutive, .segment_nodes = 4, .config_edges = true});
  EXPECT_THAT(cut.config_edges, ElementsAre(6, 3));  // segments 0 to 2, 3 to 6
  EXPECT_TRUE(reduced_graph(graph, {}).config_edges.empty());
  EXPECT_TRUE(reduced_graph(graph_of(3, {1, 0}, {}), {.config_edges = true}).config_edges.empty());
  EXPECT_EQ(to_text({.config_edges = true}), "with config edges");
}

// 1,025 configurable nodes below one node, and as many above it.
TEST(ConfigEdges, HaveALimit) {
  const std::int32_t side = 1025, between = 2 * side;
  std::vector<std::int32_t> edges, config_nodes;
  for (std::int32_t node = 0; node < side; ++node) {
    edges.insert(edges.end(), {side + node, between, between, node});
    config_nodes.insert(config_nodes.end(), {node, side + node});
  }
  Graph graph = graph_of(between + 1, edges, config_nodes);
  graph.name = "wide";
  EXPECT_THAT(message_of<DataError>([&] { reduced_graph(graph, {.config_edges = true}); }),
              HasSubstr("wide: has more than 1048576 edges between"));
  EXPECT_EQ(reduced_graph(graph, {}).nodes, between + 1);
}

// 17,000 configurable nodes above one with 16,000 edges, in which none ends.
TEST(ConfigEdges, AreNotLookedForWithoutAnEnd) {
  std::vector<std::int32_t> edges, config_nodes;
  for (int i = 0; i < 16'000; ++i) edges.insert(edges.end(), {1, 0});
  for (std::int32_t node = 2; node < 17'002; ++node) {
    edges.insert(edges.end(), {node, 1});
    config_nodes.push_back(node);
  }
  Graph graph = graph_of(17'002, edges, config_nodes);
  graph.name = "long";
  EXPECT_THAT(message_of<DataError>([&] { config_edges_of(graph); }),
              HasSubstr("long: would follow more than 268435456 edges between"));
}

TEST(DrawnNodes, AreAPartOfTheGraph) {
  const GraphPart part = part_of(chain(), {1, 2, 3, 5}, chain().edge_index);
  EXPECT_THAT(part.edges, ElementsAre(1, 0, 2, 1));  // 2 <- 3 and 1 <- 2; 5 lost its neighbours
  EXPECT_THAT(part.config_nodes, ElementsAre(2));
  EXPECT_THAT(part.config_places, ElementsAre(0));
  EXPECT_FALSE(drawing(7, Sample::window).draws(7));
  EXPECT_EQ(drawing(7, Sample::window).seen(9), 7);
  EXPECT_EQ(to_text(drawing(7, Sample::window)), "at most 7 nodes, a window");
}

// The numbers of the 1st place's own code on the same graphs.
TEST(GraphReduction, LeavesOfRealGraphsWhatTheFirstPlaceKept) {
  const auto root = real_data_root();
  if (!root) GTEST_SKIP() << "needs real TpuGraphs data (TPUDIST_REAL_DATA)";
  const GraphReduction first_place{.wanted = true};
  const auto module = [&](const char* collection, const char* file) {
    const Collection parsed = Collection::parse(collection);
    return read_module(*root / "npz" / parsed.folder() / file, parsed, first_place);
  };
  const Module alexnet = module("layout:xla:random", "valid/alexnet_train_batch_32.npz");
  EXPECT_EQ(alexnet.dataset.graph(0).nodes, 73);
  EXPECT_EQ(alexnet.dataset.entry(0).nodes, 372);
  EXPECT_EQ(alexnet.dataset.graph(0).config_nodes.size(), 26u);
  const Module resnet = module("layout:xla:default", "train/resnet_main_10904.npz");
  EXPECT_EQ(resnet.dataset.graph(0).nodes, 223);
  EXPECT_EQ(resnet.dataset.entry(0).nodes, 3163);
}

// [segments] how many nodes each has.
std::vector<std::int64_t> sizes_of(const std::vector<std::int32_t>& segment) {
  std::vector<std::int64_t> sizes;
  for (const std::int32_t own : segment) {
    if (static_cast<std::size_t>(own) >= sizes.size())
      sizes.resize(static_cast<std::size_t>(own) + 1, 0);
    ++sizes[own];
  }
  return sizes;
}

class Segments : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_metis()) GTEST_SKIP() << "built without METIS";
  }
};

// Every node is in one segment, the sizes are bounded, and the second time it is the same; also of
// graphs without edges, with one node, of several parts, with self loops and parallel edges.
TEST_F(Segments, OfMetisAreBoundedAndRepeat) {
  CounterRng random(5);
  for (const std::int64_t nodes : {1, 2, 9, 10, 11, 25, 200, 3000}) {
    for (const int kind : {0, 1, 2, 3}) {
      std::vector<std::int32_t> edges;
      for (std::int64_t i = 1; i < nodes && kind > 0; ++i) {
        const auto own = static_cast<std::int32_t>(i);
        if (kind == 1) edges.insert(edges.end(), {own, own - 1, own, own - 1, own, own});
        if (kind == 2 && i < nodes / 2) edges.insert(edges.end(), {own, 0});  // and single nodes
        if (kind == 3)
          edges.insert(
              edges.end(),
              {own, static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(i)))});
      }
      const Graph graph = graph_of(nodes, edges, {0});
      for (const std::int64_t most : {std::int64_t{10}, std::int64_t{70}}) {
        SCOPED_TRACE(fmt::format("{} nodes of kind {}, at most {}", nodes, kind, most));
        const std::vector<std::int32_t> segment = metis_segments(graph, most);
        EXPECT_EQ(metis_segments(graph, most), segment);
        ASSERT_EQ(std::ssize(segment), nodes);
        const std::vector<std::int64_t> sizes = sizes_of(segment);
        EXPECT_LE(std::ranges::max(sizes), most);
        EXPECT_GE(std::ranges::min(sizes), 1);
        if (nodes <= most) EXPECT_EQ(sizes.size(), 1u);
      }
    }
  }
}

// Two rings with one edge between them, their nodes in turn: ranges cut nearly all edges.
TEST_F(Segments, OfMetisCutFewEdges) {
  std::vector<std::int32_t> edges{0, 1};
  for (std::int32_t i = 0; i < 50; ++i)
    for (const std::int32_t ring : {0, 1}) {
      edges.insert(edges.end(), {2 * i + ring, 2 * ((i + 1) % 50) + ring});
      edges.insert(edges.end(), {2 * i + ring, 2 * ((i + 2) % 50) + ring});
    }
  const Graph whole = graph_of(100, edges, {3, 40});
  const GraphReduction by_metis{.segments = SegmentCut::metis, .segment_nodes = 52};
  const Graph cut = reduced_graph(whole, by_metis);
  EXPECT_EQ(cut.edges, 200);
  EXPECT_EQ(cut.nodes, 100);
  for (std::size_t node = 2; node < 100; ++node)
    EXPECT_EQ(cut.segment[node], cut.segment[node - 2]) << node;
  const auto segments = configurable_segments(cut);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].size(), 50u);
  EXPECT_EQ(std::set<std::int32_t>({segments[0][1] - segments[0][0]}), std::set<std::int32_t>{2});
  const Graph ranges =
      reduced_graph(whole, {.segments = SegmentCut::consecutive, .segment_nodes = 52});
  EXPECT_LT(ranges.edges, 200);
  EXPECT_THAT(to_text(by_metis), HasSubstr("by METIS of at most 52 nodes"));
}

}  // namespace
}  // namespace tpudist::test
