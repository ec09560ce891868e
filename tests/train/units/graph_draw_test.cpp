#include "train/units/graph_draw.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <variant>

#include "core/error.hpp"
#include "dist/collectives/communicator.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/loop/forecast.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A chain of nodes, each consuming the one before.
Graph chain(std::int32_t edges, const std::string& name = "chain") {
  Graph graph;
  graph.name = name;
  graph.nodes = edges + 1;
  graph.edges = edges;
  std::vector<std::int32_t> pairs;
  for (std::int32_t node = 0; node < edges; ++node) pairs.insert(pairs.end(), {node + 1, node});
  graph.edge_index = std::move(pairs);
  return graph;
}

TEST(GraphDraw, KeepsItsShareOfTheEdgesInTheirOrder) {
  const Graph graph = chain(10'000);
  for (const double dropout : {0.1, 0.5, 0.9}) {
    const std::vector<std::int32_t> kept = kept_edges(graph, {dropout, 7});
    EXPECT_NEAR(static_cast<double>(kept.size() / 2), 10'000 * (1 - dropout), 150);
    for (std::size_t e = 0; e < kept.size(); e += 2) {
      EXPECT_EQ(kept[e], kept[e + 1] + 1);
      if (e > 0) EXPECT_GT(kept[e], kept[e - 2]);
    }
  }
  EXPECT_EQ(kept_edges(graph, {}), graph.edge_index);
}

TEST(GraphDraw, IsOfASlateAStepAndASeed) {
  const Graph graph = chain(100);
  const auto edges = [&](const Graph& of, std::int64_t step, const char* seed = "seed.order=1") {
    return kept_edges(of, graph_draw(tiny_experiment({"batch.edge_dropout=0.5", seed}), step));
  };
  EXPECT_EQ(edges(graph, 3), edges(graph, 3));
  EXPECT_EQ(edges(graph, 3, "seed.init=9"), edges(graph, 3));
  std::set<std::vector<std::int32_t>> draws = {edges(graph, 3), edges(graph, 4),
                                               edges(chain(100, "other"), 3),
                                               edges(graph, 3, "seed.order=2")};
  EXPECT_EQ(draws.size(), 4u);

  const Experiment experiment = tiny_experiment({"batch.edge_dropout=0.5"});
  const std::vector<SlateId> slates = {
      {.epoch = 0, .number = 0}, {.epoch = 0, .number = 1}, {.epoch = 1, .number = 0}};
  const GraphDraw together = graph_draw(experiment, 3, slates);
  draws.clear();
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const GraphDraw alone = graph_draw(experiment, 3, std::span(slates).subspan(s, 1));
    EXPECT_EQ(kept_edges(graph, alone), kept_edges(graph, together, s));
    draws.insert(kept_edges(graph, together, s));
  }
  EXPECT_EQ(draws.size(), 3u);
}

// The copy of drawn nodes has the edges between them, of both sets, and their configurable nodes.
TEST(GraphDraw, OfTrainedNodesIsTheWholeGraphAndACopyOfThem) {
  Graph graph = chain(9);
  graph.config_nodes = std::vector<std::int32_t>{2, 5, 6, 9};
  graph.config_edges = std::vector<std::int32_t>{5, 2, 6, 5, 9, 6};
  GraphReduction reduction;
  reduction.max_nodes = 6;
  reduction.gradient_only = true;
  GraphDraw draw;
  draw.trains = true;
  const GraphPart part = drawn_part(graph, reduction, draw);
  ASSERT_EQ(part.nodes.size(), 16u);
  const auto again = [&](std::span<const std::int32_t> ends) {
    std::vector<std::int32_t> expected(ends.begin(), ends.end());
    for (std::size_t e = 0; e < ends.size(); e += 2) {
      const auto first = std::find(part.nodes.begin() + 10, part.nodes.end(), ends[e]);
      const auto second = std::find(part.nodes.begin() + 10, part.nodes.end(), ends[e + 1]);
      if (first == part.nodes.end() || second == part.nodes.end()) continue;
      for (const auto& place : {first, second})
        expected.push_back(static_cast<std::int32_t>(place - part.nodes.begin()));
    }
    EXPECT_GT(expected.size(), ends.size());
    return expected;
  };
  EXPECT_EQ(part.edges, again(graph.edge_index));
  EXPECT_EQ(part.config_edges, again(graph.config_edges));
  for (std::size_t i = 0; i < part.config_nodes.size(); ++i)
    EXPECT_EQ(part.nodes[part.config_nodes[i]], graph.config_nodes[part.config_places[i]]);
}

// A slate sees the same edges alone and in a unit with others of its graph, in both kinds of plans;
// two slates of the same configurations see different ones.
TEST(GraphDraw, IsThatOfASlateAmongOthersOfItsGraph) {
  const Experiment experiment = tiny_experiment({"batch.edge_dropout=0.4"});
  const OneRankSetup setup(experiment);
  AlignedFloats flat(static_cast<std::size_t>(setup.network.parameters().length()));
  setup.network.initialise(flat, 1);
  const std::vector<SlateId> ids = {{.number = 0}, {.number = 1}, {.number = 2}};
  const std::vector<SlateRows> rows(3, SlateRows{0, {0, 1, 2, 3}});
  for (const PlanMode mode : {PlanMode::dense, PlanMode::refined}) {
    const UnitBuilder units(setup.data, setup.network, mode);
    const Unit unit = units.build(rows, graph_draw(experiment, 5, ids));
    const UnitScores together = setup.network.scores(flat, 0, 1, unit.input);
    std::set<double> firsts;
    for (std::size_t s = 0; s < ids.size(); ++s) {
      const Unit own = units.build(std::span(rows).subspan(s, 1),
                                   graph_draw(experiment, 5, std::span(ids).subspan(s, 1)));
      const UnitScores alone = setup.network.scores(flat, 0, 1, own.input);
      for (std::size_t k = 0; k < 4; ++k) {
        const double expected = alone.common[0] + alone.delta[k];
        EXPECT_NEAR(together.common[s] + together.delta[4 * s + k], expected,
                    1e-5 * std::abs(expected));
      }
      firsts.insert(alone.common[0] + alone.delta[0]);
    }
    EXPECT_EQ(firsts.size(), 3u);
  }
}

// The scores of a slate by one member, as they begin, of a unit that sees these edges.
std::vector<double> scores(const TrainingSetup& setup, const UnitBuilder& units,
                           const SlateRows& rows, const GraphDraw& edges) {
  AlignedFloats flat(static_cast<std::size_t>(setup.network.parameters().length()));
  setup.network.initialise(flat, 1);
  const Unit unit = units.build(std::span(&rows, 1), edges);
  const UnitScores result = setup.network.scores(flat, 0, 1, unit.input);
  std::vector<double> all;
  for (const double delta : result.delta) all.push_back(result.common[0] + delta);
  return all;
}

// Dense and refined plans see the same edges, and other ones than those of the whole graph.
TEST(GraphDraw, DecidesTheEdgesOfBothKindsOfPlans) {
  const Experiment experiment = tiny_experiment({"batch.edge_dropout=0.4"});
  const OneRankSetup setup(experiment);
  const UnitBuilder dense(setup.data, setup.network, PlanMode::dense),
      refined(setup.data, setup.network, PlanMode::refined);
  for (int g = 0; g < setup.data.size(); ++g) {
    const SlateRows rows{g, {0, 1, 2, 3}};
    const auto a = scores(setup, dense, rows, graph_draw(experiment, 5)),
               b = scores(setup, refined, rows, graph_draw(experiment, 5)),
               other = scores(setup, dense, rows, graph_draw(experiment, 6)),
               whole = scores(setup, dense, rows, {});
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5 * std::abs(a[k]));
    EXPECT_NE(a, other);
    EXPECT_NE(a, whole);
    EXPECT_EQ(scores(setup, dense, rows, {}), whole);
  }
}

// A graph with only the drawn nodes, as if it had been stored so.
OpenGraph cut(const Dataset& data, const DatasetOptions& options, const GraphPart& part) {
  OpenGraph g = OpenGraph::open(data.entry(0), options.rows());
  Graph& graph = g.graph;
  const std::size_t width = graph.feature_count();
  std::vector<float> features;
  std::vector<std::uint8_t> opcodes;
  for (const std::int32_t node : part.nodes) {
    const auto row = graph.node_features.begin() + static_cast<std::size_t>(node) * width;
    features.insert(features.end(), row, row + width);
    opcodes.push_back(graph.opcodes[node]);
  }
  graph.nodes = std::ssize(part.nodes);
  graph.edges = std::ssize(part.edges) / 2;
  graph.node_features = std::move(features);
  graph.opcodes = std::move(opcodes);
  graph.edge_index = std::vector(part.edges);
  graph.config_nodes = std::vector(part.config_nodes);
  const std::vector<std::int32_t>& places = part.config_places;
  for (std::int64_t c = 0; c < g.chunk_count(); ++c) {
    ConfigChunk chunk = g.read_chunk(c);
    std::visit(
        [&](auto& codes) {
          using Code = std::remove_cvref_t<decltype(codes[0])>;
          std::vector<Code> kept;
          for (std::size_t row = 0; row < codes.size(); row += static_cast<std::size_t>(g.width))
            for (const std::int32_t place : places)
              kept.push_back(codes[row + static_cast<std::size_t>(place)]);
          codes = std::move(kept);
        },
        chunk.codes);
    g.chunks.push_back(std::move(chunk));
  }
  const ConfigStates whole = g.states;
  const std::size_t state = kLayoutConfigFeatures;
  std::vector<float> states;
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t place : places) {
    const auto at = static_cast<std::size_t>(place);
    states.insert(states.end(), whole.features.begin() + whole.offsets[at] * state,
                  whole.features.begin() + whole.offsets[at + 1] * state);
    offsets.push_back(static_cast<std::int32_t>(states.size() / state));
  }
  g.states.features = std::move(states);
  g.states.offsets = std::move(offsets);
  g.width = std::ssize(part.config_nodes);
  g.entry.config_nodes = g.width;
  return g;
}

// A slate that sees drawn nodes has the scores that a graph of these nodes alone has, in both kinds
// of plans, with and without dropped edges.
TEST(GraphDraw, ShowsASlateWhatAGraphOfTheDrawnNodesWouldShow) {
  ThreadPool pool(1, use_one_thread_per_worker);
  const auto world = make_self_communicator();
  for (const char* sample : {"window", "random"}) {
    const Experiment experiment =
        tiny_experiment({std::string("data.reduce={max_nodes: 15, sample: ") + sample + "}",
                         "data.duplicates=keep"});
    const DatasetOptions options = experiment.data.training();
    const TrainingSetup setup(experiment, options, pool, -1, 1, *world);
    ASSERT_GT(setup.data.graph(0).nodes, 15);
    const SlateRows rows{0, {0, 1, 2, 3}};
    std::vector<double> firsts;
    for (const std::int64_t step : {5, 6}) {
      const GraphDraw draw = graph_draw(experiment, step);
      const GraphPart part = drawn_part(setup.data.graph(0), options.reduction, draw);
      ASSERT_EQ(part.nodes.size(), 15u);
      DatasetOptions whole = options;
      whole.reduction = {};
      std::vector<OpenGraph> graphs;
      graphs.push_back(cut(setup.data, whole, part));
      const Dataset alone = Dataset::of_graphs(whole, std::move(graphs));
      for (const PlanMode mode : {PlanMode::dense, PlanMode::refined}) {
        const UnitBuilder drawn(setup.data, setup.network, mode),
            stored(alone, setup.network, mode);
        const auto a = scores(setup, drawn, rows, draw), b = scores(setup, stored, rows, {});
        ASSERT_EQ(a.size(), 4u);
        for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-6 * std::abs(b[k]));
        firsts.push_back(a[0]);
      }
    }
    EXPECT_NE(firsts[0], firsts[2]);
  }
}

TEST(GraphDraw, LeavesGraphsWholeThatAreNotLarger) {
  TempDir folder;
  const auto hash = [&](const char* name, std::vector<std::string> overrides) {
    return run(tiny_experiment(std::move(overrides)), folder / name).parameter_hash;
  };
  EXPECT_EQ(hash("all", {"data.reduce={max_nodes: 100000}"}), hash("whole", {}));
  EXPECT_NE(hash("drawn", {"data.reduce={max_nodes: 15}"}), hash("again", {}));
}

// The largest graph is drawn from, or not, by one node.
TEST(GraphDraw, BeginsAboveMaxNodes) {
  const GraphReduction reduction{.max_nodes = 11};
  EXPECT_TRUE(keeps_whole(chain(10), reduction, {}));
  EXPECT_FALSE(keeps_whole(chain(11), reduction, {}));
  EXPECT_FALSE(keeps_whole(chain(10), reduction, {.dropout = 0.5}));
}

TEST(GraphDraw, GivesTheSameBitsForAnyNumberOfThreadsAndMembers) {
  const TempDir folder;
  const Experiment experiment =
      tiny_experiment({"batch.edge_dropout=0.3", "data.reduce={max_nodes: 20, sample: random}"});
  const std::uint64_t one = run(experiment, folder / "one", 1).parameter_hash;
  EXPECT_EQ(run(experiment, folder / "three", 3).parameter_hash, one);
  EXPECT_NE(run(tiny_experiment(), folder / "whole", 1).parameter_hash, one);
}

// Each chunk holds the first configuration of its slate, whose score is that in the whole slate.
TEST(GraphDraw, IsTheSameInAllChunksOfASlate) {
  const auto chunks = [](const char* chunk) {
    const Experiment experiment =
        tiny_experiment({"batch.edge_dropout=0.3", "data.reduce={max_nodes: 20}", chunk,
                         "plan=dense", "ensemble.folds=none", "ensemble.members=1"});
    const OneRankSetup setup(experiment);
    AlignedFloats flat(static_cast<std::size_t>(setup.network.parameters().length()));
    setup.network.initialise(flat, 1);
    std::vector<double> firsts;  // score of the first configuration of each slate, chunk by chunk
    for (const UnitPass& pass : setup.steps_of(0).build(2).passes) {
      std::vector<const UnitInput*> inputs;
      for (const UnitInput& input : pass.data->chunks) inputs.push_back(&input);
      if (inputs.empty()) inputs.push_back(&pass.data->input);
      for (const UnitInput* input : inputs) {
        const UnitScores result = setup.network.scores(flat, 0, 1, *input);
        firsts.push_back(result.common[0] + result.delta[0]);
      }
    }
    return firsts;
  };
  const std::vector<double> whole = chunks("batch.config_chunk=auto"),
                            cut = chunks("batch.config_chunk=2");
  ASSERT_EQ(cut.size(), 3 * whole.size());  // slates of 4: each chunk holds the first
  for (std::size_t i = 0; i < cut.size(); ++i)
    EXPECT_NEAR(cut[i], whole[i / 3], 1e-5 * std::abs(whole[i / 3]));
}

TEST(GraphDraw, IsPartOfTheForecast) {
  OneRank alone;
  const auto text = [&](const char* dropout) {
    return plan_work(tiny_experiment({dropout, "train.last_evaluation=none"}), {1}, alone.context)
        .text;
  };
  EXPECT_THAT(text("batch.edge_dropout=0.25"),
              HasSubstr("25 % of edges dropped, anew for every slate and step; planned in "));
  EXPECT_THAT(text("batch.edge_dropout=0"), Not(HasSubstr("dropped")));
  const auto steps = [](const std::string& forecast) {
    const std::size_t at = forecast.find("  training");
    return forecast.substr(at, forecast.find('\n', at) - at);
  };
  EXPECT_NE(steps(text("batch.edge_dropout=0.9")), steps(text("batch.edge_dropout=0")));
}

TEST(GraphDraw, IsAShareBelowOne) {
  EXPECT_THROW(tiny_experiment({"batch.edge_dropout=1"}), ConfigError);
  EXPECT_THROW(tiny_experiment({"batch.edge_dropout=-0.1"}), ConfigError);
}

}  // namespace
}  // namespace tpudist::test
