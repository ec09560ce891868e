#include <gtest/gtest.h>

#include <vector>

#include "models/plans/build_plan.hpp"
#include "tests/models/plans/check_plan.hpp"

// The example that docs/glossary.md draws: whoever changes a number here changes it there.

namespace tpudist {
namespace {

using Ints = std::vector<std::int32_t>;
using Offsets = std::vector<std::int64_t>;
using Floats = std::vector<float>;

// Nodes 0 and 3 have equal features and opcode. Node 1 consumes both and is configurable; node 2
// consumes node 1. Two configurations give node 1 its states 0 and 1. One layer, in which each node
// adds up its consumers.
struct GlossaryExample {
  Ints edges = {1, 0, 1, 3, 2, 1}, config_nodes = {1}, states = {0, 1}, node_class = {0, 1, 2, 0},
       state_class = {0, 1};
  PlanShape shape{{{{EdgeKind::consumer_to_producer}, Aggregation::sum}}, false};
};

TEST(GlossaryExample, DensePlanHasARowForEachNodeAndConfiguration) {
  const GlossaryExample example;
  const std::vector<PlanSlate> slates{
      {4, example.edges, example.config_nodes, 2, example.states, 2, example.node_class, 3}};
  const Plan plan = build_dense_plan(slates, example.shape);
  check_plan(plan);
  // Nodes 0, 1, 3 and last node 2, each for configuration 0 and 1.
  EXPECT_EQ(plan.node, (Ints{0, 0, 1, 1, 0, 0, 2, 2}));
  EXPECT_EQ(plan.state, (Ints{-1, -1, 0, 1, -1, -1, -1, -1}));
  EXPECT_EQ(plan.needed_first_rows, 8);
  const PlanLayer& layer = *plan.layers[0];
  EXPECT_TRUE(layer.self.is_identity());
  EXPECT_EQ(layer.rows_out, 8);
  EXPECT_EQ(layer.edges[0].aggregate.replicas, 2);
  EXPECT_EQ(layer.edges[0].aggregate.forward.begin, (Ints{0, 1, 2, 3, 3}));
  EXPECT_EQ(layer.edges[0].aggregate.forward.source, (Ints{1, 3, 1}));
  EXPECT_EQ(plan.needed_counts[0].rows, 6);
  EXPECT_EQ(plan.readout.cells.forward.source, (Ints{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(plan.readout.common.forward.source, Ints{6});
}

TEST(GlossaryExample, RefinedPlanHasARowForEachColour) {
  const GlossaryExample example;
  const RefinedGraph graph(4, example.edges, example.config_nodes, std::vector(example.node_class),
                           example.shape);
  const std::vector<RefinedSlate> slates{{&graph, 2, example.states, example.state_class, 2}};
  const Plan plan = build_refined_plan(slates);
  check_plan(plan);
  // Node 1 in either state, nodes 0 and 3 together, node 2.
  EXPECT_EQ(plan.node, (Ints{1, 1, 0, 2}));
  EXPECT_EQ(plan.state, (Ints{0, 1, -1, -1}));
  EXPECT_EQ(plan.needed_first_rows, 4);
  const PlanLayer& layer = *plan.layers[0];
  // Nodes 0 and 3 beside either state of node 1, node 1 in either state, node 2.
  EXPECT_EQ(layer.self.index, (Ints{2, 2, 0, 1, 3}));
  EXPECT_EQ(layer.edges[0].neighbourhood.index, (Ints{1, 2, 0, 0, 3}));
  // The neighbourhoods: node 2 alone, node 1 in either state, nothing.
  EXPECT_EQ(layer.edges[0].aggregate.forward.begin, (Ints{0, 1, 2, 3, 3}));
  EXPECT_EQ(layer.edges[0].aggregate.forward.source, (Ints{3, 0, 1}));
  EXPECT_EQ(plan.needed_counts[0].rows, 4);
  EXPECT_EQ(plan.needed_counts[0].self_rows, 3);
  EXPECT_EQ(plan.needed_counts[0].neighbourhoods, Offsets{3});
  // Each cell counts nodes 0 and 3 as twice the row that they share.
  EXPECT_EQ(plan.readout.cells.forward.source, (Ints{0, 2, 1, 3}));
  EXPECT_EQ(plan.readout.cells.forward.weight, (Floats{2, 1, 2, 1}));
  EXPECT_EQ(plan.readout.scores.forward.source, (Ints{0, 1}));
  EXPECT_EQ(plan.readout.common.forward.source, Ints{4});
}

}  // namespace
}  // namespace tpudist
