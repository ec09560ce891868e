#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "core/error.hpp"
#include "models/plans/build_plan.hpp"
#include "models/plans/csr.hpp"
#include "models/plans/plan.hpp"
#include "tests/models/plans/check_plan.hpp"
#include "tests/models/plans/make_csr.hpp"
#include "tests/models/plans/slate_case.hpp"

namespace tpudist {
namespace {

using Ints = std::vector<std::int32_t>;
using Floats = std::vector<float>;

const LayerShape kForth{{EdgeKind::consumer_to_producer}, Aggregation::mean};
const LayerShape kBack{{EdgeKind::producer_to_consumer}, Aggregation::sum};

// Nodes 0 <- 1, 0 <- 2 (twice), 1 <- 2; node 1 configurable.
struct SmallGraph {
  Ints edges = {1, 0, 2, 0, 2, 0, 2, 1}, config_nodes = {1}, states = {1, 0};
  PlanSlate slate() const { return {3, edges, config_nodes, 2, states, 2}; }
};

TEST(DensePlan, IsOneRowForEachNodeAndConfiguration) {
  const SmallGraph graph;
  const PlanSlate slate = graph.slate();
  const Plan plan = build_dense_plan(std::span(&slate, 1), {{kForth, kForth}, false});
  check_plan(plan);
  EXPECT_EQ(plan.node, (Ints{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(plan.state, (Ints{-1, -1, 1, 0, -1, -1}));
  EXPECT_EQ(plan.total_rows(), 18);
  ASSERT_EQ(plan.layers.size(), 2u);
  EXPECT_EQ(plan.layers[0], plan.layers[1]);  // shared
  EXPECT_EQ(plan.readout.cells.forward.source, (Ints{0, 2, 1, 3}));
  EXPECT_EQ(plan.readout.cells.forward.weight, Floats(4, 1.0f));
  EXPECT_EQ(plan.readout.common.forward.source, Ints{4});  // node 2, which nothing reaches
  EXPECT_GT(plan.bytes(), 0u);
}

// Node 2 takes part in the differences as a neighbour only, and after the first layer no more.
TEST(DensePlan, NodesNeededInMoreLayersComeFirst) {
  const Ints edges = {1, 3, 0, 1, 2, 0}, config_nodes = {3}, states = {1, 0};
  const PlanSlate slate{4, edges, config_nodes, 2, states, 2};  // 3 -> 1 -> 0 -> 2
  const LayerShape back{{EdgeKind::producer_to_consumer}, Aggregation::mean};
  const Plan plan = build_dense_plan(std::span(&slate, 1), {{kForth, back}, false});
  check_plan(plan);
  // Node 3 is configurable; node 1 takes from it in the last layer.
  EXPECT_EQ(plan.node, (Ints{1, 1, 3, 3, 0, 0, 2, 2}));
  EXPECT_EQ(plan.needed_counts[1].rows, 4);
  EXPECT_EQ(plan.needed_counts[0].rows, 4);
  EXPECT_EQ(plan.needed_first_rows, 6);  // node 0 as node 1's neighbour
  EXPECT_EQ(plan.readout.cells.forward.source, (Ints{0, 2, 1, 3}));
  EXPECT_EQ(plan.readout.common.forward.source, (Ints{4, 6}));
}

TEST(DensePlan, ProducersTakeTheMeanOfTheirConsumers) {
  const SmallGraph graph;
  const PlanSlate slate = graph.slate();
  const Plan plan = build_dense_plan(std::span(&slate, 1), {{kForth, kBack}, true});
  const SparseMatrix& forth = plan.layers[0]->edges[0].aggregate;
  EXPECT_EQ(forth.replicas, 2);
  EXPECT_EQ(forth.forward.begin, (std::vector<std::int32_t>{0, 2, 3, 3}));
  EXPECT_EQ(forth.forward.source, (Ints{1, 2, 2}));
  EXPECT_EQ(forth.forward.weight, (Floats{1.0f / 3, 2.0f / 3, 1}));  // parallel edges count twice
  const SparseMatrix& back = plan.layers[1]->edges[0].aggregate;
  EXPECT_EQ(back.forward.source, (Ints{0, 0, 1}));
  EXPECT_EQ(back.forward.weight, (Floats{1, 2, 1}));
  EXPECT_EQ(plan.readout.cells.forward.weight, Floats(6, 1.0f / 3));
}

TEST(DensePlan, WritesRowsOutWhereSlatesDifferInK) {
  const SmallGraph graph;
  PlanSlate one = graph.slate();
  one.configs = 1;
  one.states = one.states.first(1);
  const std::vector<PlanSlate> slates = {graph.slate(), one};
  const Plan plan = build_dense_plan(slates, {{kForth}, false});
  check_plan(plan);
  EXPECT_EQ(plan.node, (Ints{0, 0, 1, 1, 3, 4, 2, 2, 5}));
  EXPECT_EQ(plan.state, (Ints{-1, -1, 1, 0, -1, 3, -1, -1, -1}));  // tables one after another
  EXPECT_EQ(plan.layers[0]->edges[0].aggregate.replicas, 1);
  EXPECT_EQ(plan.layers[0]->edges[0].aggregate.forward.source, (Ints{2, 6, 3, 7, 6, 7, 5, 8, 8}));
  EXPECT_EQ(plan.readout.slate_of_config, (Ints{0, 0, 1}));
}

TEST(DensePlan, NodesOfEqualInputsShareAnInputRow) {
  const SmallGraph graph;
  const Ints input_row = {0, 1, 0};
  PlanSlate slate = graph.slate();
  slate.input_row = input_row;
  slate.input_rows = 2;
  slate.input_begin = 0;
  const std::vector<PlanSlate> slates = {slate, slate};  // of the same graph
  const Plan plan = build_dense_plan(slates, {{kForth}, false});
  check_plan(plan);
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_EQ(plan.node, (Ints{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(DensePlan, GivesTileStatesToAllNodes) {
  const Ints edges = {1, 0}, states = {2, 0};
  const PlanSlate slate{2, edges, {}, 2, states, 3};
  const Plan plan = build_dense_plan(std::span(&slate, 1), {{kForth}, false});
  check_plan(plan);
  EXPECT_EQ(plan.state, (Ints{2, 0, 2, 0}));
}

TEST(DensePlan, RefusesBrokenSlates) {
  const auto build = [](PlanSlate slate) {
    return build_dense_plan(std::span(&slate, 1), {{kForth}, false});
  };
  const SmallGraph graph;
  const PlanSlate good = graph.slate();
  PlanSlate slate = good;
  const Ints outside = {1, 3}, negative = {-1, 0};
  slate.edges = outside;
  EXPECT_THROW(build(slate), Error);
  slate.edges = std::span(good.edges).first(3);
  EXPECT_THROW(build(slate), Error);
  slate = good;
  slate.config_nodes = negative;
  EXPECT_THROW(build(slate), Error);
  slate = good;
  slate.states = outside;
  EXPECT_THROW(build(slate), Error);
  slate = good;
  slate.configs = 3;
  EXPECT_THROW(build(slate), Error);
  slate.configs = 0;
  EXPECT_THROW(build(slate), Error);
}

RC_GTEST_PROP(DensePlan, HoldsItsInvariants, (std::uint64_t key)) {
  CounterRng rng(key);
  std::vector<test::SlateCase> cases;
  for (std::uint64_t s = 0; s < 1 + rng.below(3); ++s) {
    cases.push_back(
        test::random_slate(key + s, 2 + rng.below(8), 1 + rng.below(4), rng.below(3), 2));
  }
  std::vector<PlanSlate> slates;
  for (const auto& slate : cases) slates.push_back(slate.view());
  const PlanShape shape{{kForth, kBack, kForth}, rng.below(2) == 1};
  const Plan plan = build_dense_plan(slates, shape);
  check_plan(plan);
  std::int64_t rows = 0;
  for (const PlanSlate& slate : slates) rows += slate.nodes * slate.configs;
  RC_ASSERT(plan.total_rows() == 4 * rows);
}

TEST(Csr, MergesAndTransposes) {
  const std::vector<test::CsrEntry> entries = {{1, 2, 0.5f}, {0, 1, 1}, {1, 0, 2}, {1, 2, 0.25f}};
  const Csr csr = test::make_csr(3, entries);
  EXPECT_EQ(csr.begin, (std::vector<std::int32_t>{0, 1, 3, 3}));
  EXPECT_EQ(csr.source, (Ints{1, 0, 2}));
  EXPECT_EQ(csr.weight, (Floats{1, 2, 0.75f}));
  const Csr back = transpose(csr, 4);
  EXPECT_EQ(back.begin, (std::vector<std::int32_t>{0, 1, 2, 3, 3}));
  EXPECT_EQ(back.source, (Ints{1, 0, 1}));
  EXPECT_EQ(transpose(back, 3).source, csr.source);
  const Csr rows = transpose_index(Ints{1, -1, 0, 1}, 3);
  EXPECT_EQ(rows.begin, (std::vector<std::int32_t>{0, 1, 3, 3}));
  EXPECT_EQ(rows.source, (Ints{2, 0, 3}));
  EXPECT_THROW(to_index32(std::int64_t{1} << 31), Error);
}

}  // namespace
}  // namespace tpudist
