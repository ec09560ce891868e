#include "tests/models/plans/check_plan.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "models/plans/build_plan.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<std::int32_t>;

// Nodes 0 and 3 have equal features and opcode. Node 1 consumes both and is configurable; node 2
// consumes node 1. Two configurations and two layers, in which each node adds up its consumers.
struct Example {
  Ints edges = {1, 0, 1, 3, 2, 1}, config_nodes = {1}, states = {0, 1}, node_class = {0, 1, 2, 0},
       state_class = {0, 1};
  LayerShape layer{{EdgeKind::consumer_to_producer}, Aggregation::sum};
  PlanShape shape{{layer, layer}, false};
};

Plan dense() {
  const Example example;
  const std::vector<PlanSlate> slates{
      {4, example.edges, example.config_nodes, 2, example.states, 2, example.node_class, 3}};
  return build_dense_plan(slates, example.shape);
}

Plan refined() {
  const Example example;
  const RefinedGraph graph(4, example.edges, example.config_nodes, std::vector(example.node_class),
                           example.shape);
  const std::vector<RefinedSlate> slates{{&graph, 2, example.states, example.state_class, 2}};
  return build_refined_plan(slates);
}

// What check_plan says of a plan.
std::string refusal(const Plan& plan) {
  return test::message_of<Error>([&] { check_plan(plan); });
}

// What it says when layer `number` is changed.
std::string with_layer(Plan plan, std::size_t number,
                       const std::function<void(PlanLayer&)>& change) {
  const auto layer = std::make_shared<PlanLayer>(*plan.layers[number]);
  change(*layer);
  plan.layers[number] = layer;
  return refusal(plan);
}

// What it says when the matrix of layer 0 of the dense plan is changed.
std::string with_matrix(const std::function<void(SparseMatrix&)>& change) {
  return with_layer(dense(), 0, [&](PlanLayer& layer) { change(layer.edges[0].aggregate); });
}

std::string with_counts(Plan plan, std::size_t number,
                        const std::function<void(NeededCounts&)>& change) {
  change(plan.needed_counts[number]);
  return refusal(plan);
}

std::string with_plan(Plan plan, const std::function<void(Plan&)>& change) {
  change(plan);
  return refusal(plan);
}

TEST(CheckPlan, TakesWhatTheBuildersMake) {
  EXPECT_EQ(refusal(dense()), "");
  EXPECT_EQ(refusal(refined()), "");
}

TEST(CheckPlan, RefusesBrokenMatrices) {
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) { matrix.transposed.begin.push_back(3); }),
              HasSubstr("layer 0.aggregate.transposed has 5 rows instead of 4"));
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) { matrix.forward.begin.back() = 2; }),
              HasSubstr("layer 0.aggregate.forward: offsets do not span the entries"));
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) { matrix.forward.weight.assign(2, 1.0f); }),
              HasSubstr("layer 0.aggregate.forward: weights and sources differ in number"));
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) {
                std::swap(matrix.forward.begin[1], matrix.forward.begin[2]);
              }),
              HasSubstr("layer 0.aggregate.forward: offsets decrease"));
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) { matrix.forward.source[0] = 4; }),
              HasSubstr("layer 0.aggregate.forward: source out of range"));
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) { matrix.forward.source[0] = -1; }),
              HasSubstr("layer 0.aggregate.forward: source out of range"));
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) {
                // The transposed matrix has a row of two sources; here they are in the wrong order.
                std::swap(matrix.transposed, matrix.forward);
                std::swap(matrix.forward.source[0], matrix.forward.source[1]);
              }),
              HasSubstr("not sorted or not merged"));
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) { matrix.replicas = 3; }),
              HasSubstr("layer 0.aggregate: rows are no multiple of the replicas"));
  EXPECT_THAT(with_matrix([](SparseMatrix& matrix) {
                matrix.forward.weight.assign(matrix.forward.source.size(), 2.0f);
              }),
              HasSubstr("layer 0.aggregate: not the exact transpose"));
}

TEST(CheckPlan, RefusesBrokenGatherIndices) {
  EXPECT_THAT(with_layer(refined(), 0, [](PlanLayer& layer) { layer.self.index[0] = 77; }),
              HasSubstr("layer 0.self: index out of range"));
  EXPECT_THAT(with_layer(refined(), 0, [](PlanLayer& layer) { layer.self.index.pop_back(); }),
              HasSubstr("layer 0.self: wrong length"));
  EXPECT_THAT(
      with_layer(refined(), 0,
                 [](PlanLayer& layer) { std::swap(layer.self.index[0], layer.self.index[2]); }),
      HasSubstr("rows_of_layer 0.self: not the transpose"));
  EXPECT_THAT(with_layer(refined(), 0, [](PlanLayer& layer) { layer.edges[0].neighbourhood = {}; }),
              HasSubstr("layer 0: gathers only in part"));
  EXPECT_THAT(with_layer(refined(), 1, [](PlanLayer& layer) { layer.self = {}; }),
              HasSubstr("layer 1: gathers unlike the others"));
  EXPECT_THAT(with_layer(dense(), 0, [](PlanLayer& layer) { layer.rows_out = 6; }),
              HasSubstr("layer 0.self: needs an explicit index"));
  EXPECT_THAT(with_layer(dense(), 1, [](PlanLayer& layer) { layer.rows_in = 6; }),
              HasSubstr("layer 1: does not take the rows before it"));
}

TEST(CheckPlan, RefusesBrokenNeededCounts) {
  EXPECT_THAT(with_counts(dense(), 0, [](NeededCounts& counts) { counts.rows = 9; }),
              HasSubstr("layer 0: needed rows out of range"));
  EXPECT_THAT(with_counts(dense(), 0, [](NeededCounts& counts) { counts.rows = -1; }),
              HasSubstr("layer 0: needed rows out of range"));
  EXPECT_THAT(with_counts(dense(), 0, [](NeededCounts& counts) { counts.self_rows = -1; }),
              HasSubstr("layer 0: a needed row's own state is not needed"));
  EXPECT_THAT(with_counts(dense(), 0, [](NeededCounts& counts) { counts.neighbourhoods.clear(); }),
              HasSubstr("layer 0: edge sets and counts of needed neighbourhoods differ in number"));
  EXPECT_THAT(with_counts(dense(), 0, [](NeededCounts& counts) { counts.self_rows = 2; }),
              HasSubstr("layer 0.self: a needed row takes what is not needed"));
  EXPECT_THAT(with_counts(dense(), 0, [](NeededCounts& counts) { counts.neighbourhoods[0] = 3; }),
              HasSubstr("layer 0: needed neighbourhoods out of range"));  // 2 replicas
  EXPECT_THAT(with_counts(dense(), 0, [](NeededCounts& counts) { counts.neighbourhoods[0] = 2; }),
              HasSubstr("layer 0.neighbourhood: a needed row takes what is not needed"));
  // Node 2 has the last two rows, which node 1 takes in the next layer.
  EXPECT_THAT(with_counts(dense(), 0, [](NeededCounts& counts) { counts.rows = 6; }),
              HasSubstr("layer 1: a needed neighbourhood takes what is not needed"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.needed_first_rows = 9; }),
              HasSubstr("needed first rows out of range"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.needed_counts.pop_back(); }),
              HasSubstr("layers and needed counts differ in number"));
}

TEST(CheckPlan, RefusesBrokenEnds) {
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.state.pop_back(); }),
              HasSubstr("node and state differ in length"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.node[0] = 3; }),
              HasSubstr("node: index out of range"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.node[0] = 1; }),
              HasSubstr("rows_of_node: not the transpose"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.state[0] = -2; }),
              HasSubstr("state: index out of range"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.readout.cells.replicas = 2; }),
              HasSubstr("readout.cells: has replicas"));
  EXPECT_THAT(with_plan(dense(),
                        [](Plan& plan) {
                          // Node 2 has the last rows and belongs to the common part.
                          plan.readout.cells = plan.readout.common;
                          plan.readout.scores = {{{0, 1, 1}, {0}, {}}, {{0, 1}, {0}, {}}};
                        }),
              HasSubstr("readout: takes what is not needed"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.configs = 3; }),
              HasSubstr("readout.scores.forward has 2 rows instead of 3"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.readout.slate_of_config.pop_back(); }),
              HasSubstr("readout.slate_of_config: wrong length"));
  EXPECT_THAT(with_plan(dense(), [](Plan& plan) { plan.readout.slate_of_config[0] = 1; }),
              HasSubstr("readout.slate_of_config: out of range"));
}

}  // namespace
}  // namespace tpudist
