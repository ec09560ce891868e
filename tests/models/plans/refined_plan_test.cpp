#include "models/plans/build_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/random.hpp"
#include "models/plans/row_keys.hpp"
#include "tests/models/plan_network.hpp"
#include "tests/models/plans/check_plan.hpp"
#include "tests/support/contracted_edges.hpp"

namespace tpudist {
namespace {

using test::PlanNetwork;

// A random graph with repeated blocks, and slates on it.
struct Case {
  std::int64_t nodes;
  std::vector<std::int32_t> edges, config_nodes, node_class, config_edges;
  std::vector<std::int32_t> state_class;          // of the graph's state table
  std::vector<std::vector<std::int32_t>> states;  // of each slate
  std::vector<std::int64_t> configs;

  std::int64_t classes() const { return 1 + *std::ranges::max_element(node_class); }
  // `input`: where the graph's input rows begin.
  PlanSlate dense(std::size_t s, std::int64_t input = 0) const {
    return {nodes,       edges,     config_nodes,
            configs[s],  states[s], static_cast<std::int64_t>(state_class.size()),
            node_class,  classes(), input,
            config_edges};
  }
  RefinedSlate refined(std::size_t s, const RefinedGraph& graph, std::int64_t input = 0) const {
    return {
        &graph, configs[s], states[s], state_class, static_cast<std::int64_t>(state_class.size()),
        input};
  }
  // What tells the input rows apart.
  std::vector<double> inputs() const {
    std::vector<double> values;
    for (std::int64_t c = 0; c < classes(); ++c) values.push_back(0.7 * static_cast<double>(c + 1));
    return values;
  }
};

// Draws configurable nodes and the slates of a graph.
void add_slates(Case& made, CounterRng& random, int slates, bool tile);

// Many nodes with equal long lists of neighbours, and one with a shorter list.
Case case_of_equal_lists(CounterRng& random, int slates, bool tile) {
  Case made;
  constexpr int kProducers = 6, kConsumers = 40;
  made.nodes = kProducers + kConsumers;
  for (int v = 0; v < made.nodes; ++v) made.node_class.push_back(v % 5);
  for (int producer = 0; producer < kProducers; ++producer) {
    for (int c = producer == 3 ? 2 : 0; c < kConsumers; ++c)
      made.edges.insert(made.edges.end(), {kProducers + c, producer});
  }
  add_slates(made, random, slates, tile);
  return made;
}

Case random_case(CounterRng& random, int slates, bool tile) {
  Case made;
  const std::int64_t block = 2 + random.below(6), repeats = 1 + random.below(4);
  made.nodes = block * repeats;
  for (std::int64_t v = 0; v < made.nodes; ++v) made.node_class.push_back(v % block % 3);
  std::vector<std::pair<int, int>> inner;
  for (std::int64_t u = 1; u < block; ++u) {
    for (std::uint64_t e = 0; e < 1 + random.below(2); ++e) inner.emplace_back(u, random.below(u));
  }
  for (std::int64_t r = 0; r < repeats; ++r) {
    for (const auto& [u, v] : inner) {
      made.edges.push_back(r * block + u);
      made.edges.push_back(r * block + v);
    }
    if (r > 0)
      made.edges.insert(made.edges.end(),
                        {static_cast<int>(r * block), static_cast<int>(r * block - 1)});
  }
  add_slates(made, random, slates, tile);
  return made;
}

void add_slates(Case& made, CounterRng& random, int slates, bool tile) {
  if (!tile) {
    for (std::int64_t v = 0; v < made.nodes; ++v) {
      if (random.below(4) == 0) made.config_nodes.push_back(v);
    }
    if (made.config_nodes.empty()) made.config_nodes.push_back(0);
  }
  made.config_edges = test::contracted_edges(made.nodes, made.edges, made.config_nodes);
  const int kinds = 3;
  const std::int64_t width = tile ? 1 : made.config_nodes.size();
  for (std::int64_t j = 0; j < width; ++j) {
    for (int kind = 0; kind < kinds; ++kind) made.state_class.push_back(kind);
  }
  for (int s = 0; s < slates; ++s) {
    made.configs.push_back(1 + random.below(9));
    auto& states = made.states.emplace_back();
    for (std::int64_t k = 0; k < made.configs.back(); ++k) {
      for (std::int64_t j = 0; j < width; ++j) states.push_back(j * kinds + random.below(kinds));
    }
  }
}

// Which layers a random network has.
enum class Mixing { graph, all };

PlanShape random_shape(CounterRng& random, Mixing mixing) {
  PlanShape shape;
  if (mixing == Mixing::all) shape.early_join = random.below(3) > 0;
  const std::uint64_t depth = 1 + random.below(5);
  for (std::uint64_t l = 0; l < depth; ++l) {
    LayerShape layer;
    const std::uint64_t kind = random.below(3);
    if (kind != 1) layer.edge_kinds.push_back(EdgeKind::consumer_to_producer);
    if (kind != 0) layer.edge_kinds.push_back(EdgeKind::producer_to_consumer);
    layer.aggregation = random.below(2) ? Aggregation::mean : Aggregation::sum;
    if (mixing == Mixing::all) {
      const std::uint64_t further = random.below(6);
      if (further == 0) layer.edge_kinds = {EdgeKind::nodes};
      if (further == 1) layer.edge_kinds = {EdgeKind::configs};
      if (further == 2) layer.edge_kinds.push_back(EdgeKind::nodes);
      if (further == 3) layer.edge_kinds.insert(layer.edge_kinds.begin(), EdgeKind::configs);
      for (const EdgeKind kind :
           {EdgeKind::config_consumer_to_producer, EdgeKind::config_producer_to_consumer}) {
        if (random.below(5) == 0) layer.edge_kinds.push_back(kind);
      }
      layer.joins_states = random.below(4) == 0;
    }
    shape.layers.push_back(layer);
  }
  shape.mean_readout = random.below(2);
  return shape;
}

std::vector<double> values(const std::vector<std::int32_t>& classes, std::size_t copies,
                           double scale) {
  std::vector<double> result;
  for (std::size_t i = 0; i < copies; ++i) {
    for (const std::int32_t c : classes) result.push_back(scale * (c + 1));
  }
  return result;
}

// Differences between the scores of a slate come from the needed rows alone.
void expect_needed_rows_suffice(const Plan& plan, const std::vector<double>& nodes,
                                const std::vector<double>& states) {
  const auto all = PlanNetwork::scores(plan, nodes, states, false);
  const auto needed = PlanNetwork::scores(plan, nodes, states, true);
  for (std::size_t k = 1; k < all.size(); ++k) {
    if (plan.readout.slate_of_config[k] != plan.readout.slate_of_config[k - 1]) continue;
    EXPECT_NEAR(all[k] - all[k - 1], needed[k] - needed[k - 1], 1e-9);
  }
}

void expect_equal_scores(const Plan& dense, const Plan& refined, const std::vector<double>& nodes,
                         const std::vector<double>& states) {
  check_plan(dense);
  check_plan(refined);
  const auto expected = PlanNetwork::scores(dense, nodes, states);
  const auto actual = PlanNetwork::scores(refined, nodes, states);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_NEAR(expected[k], actual[k], 1e-6 * std::max(1.0, std::abs(expected[k])));
  }
  EXPECT_LE(refined.total_rows(), dense.total_rows());
  expect_needed_rows_suffice(refined, nodes, states);
}

struct CaseKind {
  std::string name;
  std::uint64_t seed;
  int cases, slates;
  bool tile = false;
  int hash_bits = 64;
  Mixing mixing = Mixing::graph;
  Case (*make)(CounterRng&, int, bool) = random_case;
};

// Weights are floats (count / degree), merged differently: 1e-6 is their rounding, far below what a
// wrong merge would change.
TEST(RefinedPlan, GivesTheScoresOfTheDensePlan) {
  const CaseKind kinds[] = {
      {"one slate", 1, 300, 1},
      {"a tile graph", 2, 150, 1, true},
      {"slates of one graph", 3, 200, 3},
      {"tile slates of one graph", 4, 100, 2, true},
      {"hashes that collide", 5, 200, 2, false, 8},
      {"nodes of equal lists", 10, 60, 2, false, 64, Mixing::all, case_of_equal_lists},
      {"nodes of equal lists, collisions", 11, 60, 1, false, 8, Mixing::all, case_of_equal_lists},
      {"layers of every kind", 7, 400, 1, false, 64, Mixing::all},
      {"layers of every kind, several slates", 8, 300, 3, false, 8, Mixing::all},
      {"layers of every kind, tile graphs", 9, 200, 2, true, 64, Mixing::all},
  };
  for (const CaseKind& kind : kinds) {
    for (int i = 0; i < kind.cases; ++i) {
      SCOPED_TRACE(::testing::Message() << kind.name << ", case " << i);
      CounterRng random(kind.seed, i);
      const Case made = kind.make(random, kind.slates, kind.tile);
      const PlanShape shape = random_shape(random, kind.mixing);
      const RefinedGraph graph(made.nodes, made.edges, made.config_nodes,
                               std::vector(made.node_class), shape, made.config_edges);
      std::vector<PlanSlate> dense;
      std::vector<RefinedSlate> refined;
      for (int s = 0; s < kind.slates; ++s) {
        dense.push_back(made.dense(s));
        refined.push_back(made.refined(s, graph));
      }
      expect_equal_scores(build_dense_plan(dense, shape),
                          build_refined_plan(refined, kind.hash_bits), made.inputs(),
                          values(made.state_class, kind.slates, 1.3));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(RefinedPlan, MixesAllNodesOfAConfigurationOnce) {
  // Two nodes, of which node 0 is configurable with two states; three configurations, two equal.
  const std::vector<std::int32_t> config_nodes{0}, states{0, 1, 0}, classes{0, 1};
  const PlanShape shape{{{{EdgeKind::nodes}, Aggregation::sum}}, false};
  const RefinedGraph graph(2, {}, config_nodes, {0, 1}, shape);
  const std::vector<RefinedSlate> slates{{&graph, 3, states, classes, 2}};
  const Plan plan = build_refined_plan(slates);
  const PlanLayer& layer = *plan.layers[0];
  EXPECT_EQ(plan.first_rows(), 3);                        // two states of node 0, and node 1
  EXPECT_EQ(layer.edges[0].aggregate.forward.rows(), 2);  // two distinct configurations
  EXPECT_EQ(layer.rows_out, 4);                           // each node in each of them
  EXPECT_EQ(layer.edges[0].aggregate.forward.entries(), 4);
}

TEST(RefinedPlan, MixesConfigurationsByNode) {
  // As above: node 0 sees {0, 0, 1} in every configuration, node 1 itself three times.
  const std::vector<std::int32_t> config_nodes{0}, states{0, 1, 0}, classes{0, 1};
  const PlanShape shape{{{{EdgeKind::configs}, Aggregation::sum}}, false};
  const RefinedGraph graph(2, {}, config_nodes, {0, 1}, shape);
  const std::vector<RefinedSlate> slates{{&graph, 3, states, classes, 2}};
  const Plan plan = build_refined_plan(slates);
  const Csr& matrix = plan.layers[0]->edges[0].aggregate.forward;
  EXPECT_EQ(plan.layers[0]->rows_out, 3);
  EXPECT_EQ(matrix.rows(), 2);
  std::vector<float> counts = matrix.weight;
  std::ranges::sort(counts);
  EXPECT_EQ(counts, (std::vector<float>{1, 2, 3}));
}

TEST(RefinedPlan, JoinsStatesLateWithoutRowsForThemBefore) {
  const std::vector<std::int32_t> edges{1, 0}, config_nodes{1}, states{0, 1, 2}, classes{0, 1, 2};
  const PlanShape shape{
      {{{EdgeKind::consumer_to_producer}, Aggregation::mean}, {{}, Aggregation::mean, true}},
      false,
      false};
  const RefinedGraph graph(2, edges, config_nodes, {0, 1}, shape);
  const std::vector<RefinedSlate> slates{{&graph, 3, states, classes, 3}};
  const Plan plan = build_refined_plan(slates);
  EXPECT_EQ(plan.first_rows(), 2);
  EXPECT_EQ(plan.layers[0]->rows_out, 2);
  EXPECT_EQ(plan.layers[1]->rows_out, 4);  // three states of node 1, and node 0
  EXPECT_EQ(plan.layers[1]->state, (std::vector<std::int32_t>{0, 1, 2, -1}));
}

TEST(RefinedPlan, JoinsUnitsOfSeveralGraphs) {
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i);
    CounterRng random(6, i);
    const PlanShape shape = random_shape(random, Mixing::all);
    const Case a = random_case(random, 2, false), b = random_case(random, 1, false);
    const RefinedGraph graph_a(a.nodes, a.edges, a.config_nodes, std::vector(a.node_class), shape,
                               a.config_edges);
    const RefinedGraph graph_b(b.nodes, b.edges, b.config_nodes, std::vector(b.node_class), shape,
                               b.config_edges);
    const std::int64_t behind = a.classes();
    const std::vector<PlanSlate> dense{a.dense(0), b.dense(0, behind), a.dense(1)};
    const std::vector<RefinedSlate> refined{a.refined(0, graph_a), b.refined(0, graph_b, behind),
                                            a.refined(1, graph_a)};
    auto nodes = a.inputs();
    std::ranges::copy(b.inputs(), std::back_inserter(nodes));
    auto states = values(a.state_class, 1, 1.3);
    auto more = values(b.state_class, 1, 1.3);
    states.insert(states.end(), more.begin(), more.end());
    more = values(a.state_class, 1, 1.3);
    states.insert(states.end(), more.begin(), more.end());
    expect_equal_scores(build_dense_plan(dense, shape), build_refined_plan(refined, i % 2 ? 8 : 64),
                        nodes, states);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RefinedPlan, GivesEqualConfigurationsTheSameRows) {
  // A chain 0 <- 1 <- 2 with node 1 configurable, both configurations equal.
  const std::vector<std::int32_t> edges{1, 0, 2, 1}, config_nodes{1}, states{0, 0}, classes{0, 1};
  const PlanShape shape{{{{EdgeKind::consumer_to_producer}, Aggregation::mean}}, false};
  const RefinedGraph graph(3, edges, config_nodes, {0, 1, 2}, shape);
  const std::vector<RefinedSlate> slates{{&graph, 2, states, classes, 2}};
  const Plan plan = build_refined_plan(slates);
  EXPECT_EQ(plan.first_rows(), 3);
  EXPECT_EQ(plan.layers[0]->rows_out, 3);
  EXPECT_EQ(plan.readout.scores.forward.entries(), 0);  // nothing differs
  EXPECT_EQ(plan.needed_first_rows, 0);
  EXPECT_EQ(plan.readout.common.forward.entries(), 3);
}

TEST(RefinedPlan, MergesRepeatedBlocksAndSplitsWhereConfigurationsDiffer) {
  // Two equal chains without configuration, and one node whose two states differ.
  const std::vector<std::int32_t> edges{1, 0, 3, 2}, config_nodes{4}, states{0, 1}, classes{0, 1};
  const PlanShape shape{{{{EdgeKind::consumer_to_producer}, Aggregation::mean}}, false};
  const RefinedGraph graph(5, edges, config_nodes, {0, 1, 0, 1, 2}, shape);
  const std::vector<RefinedSlate> slates{{&graph, 2, states, classes, 2}};
  const Plan plan = build_refined_plan(slates);
  EXPECT_EQ(plan.first_rows(), 4);  // two states of node 4, then the classes 0 and 1 once each
  const std::vector<float> counts{2, 2};
  EXPECT_EQ(plan.readout.common.forward.weight, counts);
  EXPECT_EQ(plan.needed_first_rows, 2);  // the rows of node 4, which come first
  EXPECT_EQ(plan.node, (std::vector<std::int32_t>{2, 2, 0, 1}));
}

TEST(RowClasses, TreatsMinusZeroAsZeroAndComparesTheExtraByte) {
  const std::vector<float> rows{0.0f, 1.0f, -0.0f, 1.0f, 0.0f, 1.0f, 2.0f, 1.0f};
  const std::vector<std::uint8_t> extra{5, 5, 6, 5};
  EXPECT_EQ(classes_of_rows(rows, 2), (std::vector<std::int32_t>{0, 0, 0, 1}));
  EXPECT_EQ(classes_of_rows(rows, 2, extra), (std::vector<std::int32_t>{0, 0, 1, 2}));
}

}  // namespace
}  // namespace tpudist
