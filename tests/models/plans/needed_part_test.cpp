#include "models/plans/plan.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "models/plans/build_plan.hpp"
#include "tests/models/plan_network.hpp"
#include "tests/models/plans/check_plan.hpp"

namespace tpudist {
namespace {

using test::PlanNetwork;

// 5 - 4 - 3 - 2 - 1 - 0 in a chain, each node takes its consumer; node 3 can be configured, so that
// nodes 3, 2 and 1 know of it after two layers, and nothing else does.
struct Chain {
  std::vector<std::int32_t> edges{1, 0, 2, 1, 3, 2, 4, 3, 5, 4}, config_nodes{3}, codes{0, 1, 0};
  std::vector<std::int32_t> classes{0, 1, 2, 3, 4, 5};
  PlanShape shape;

  Chain() {
    const LayerShape layer{{EdgeKind::consumer_to_producer}, Aggregation::sum, false};
    shape.layers = {layer, layer};
  }
  Plan plan() const {
    const PlanSlate slate{6, edges, config_nodes, 3, codes, 2, classes, 6};
    return build_dense_plan({&slate, 1}, shape);
  }
};

TEST(NeededPart, GivesTheDifferencesOfScores) {
  const Chain chain;
  const Plan plan = chain.plan();
  const auto part = needed_part(plan, chain.shape);
  ASSERT_TRUE(part);
  check_plan(*part);
  const std::vector<double> inputs{0.3, 0.9, 1.4, 2.0, 2.7, 3.1}, states{0.5, -0.8};
  const std::vector<double> whole = PlanNetwork::scores(plan, inputs, states),
                            own = PlanNetwork::scores(*part, inputs, states);
  ASSERT_EQ(own.size(), 3u);
  for (std::size_t k = 1; k < own.size(); ++k)
    EXPECT_NEAR(own[k] - own[0], whole[k] - whole[0], 1e-12);
  EXPECT_GT(std::abs(whole[1] - whole[0]), 1e-3);
  EXPECT_GT(std::abs(whole[0] - own[0]), 1e-3);  // the common rows are left out
}

TEST(NeededPart, HoldsTheNeededRowsAlone) {
  const Chain chain;
  const Plan plan = chain.plan();
  const auto part = needed_part(plan, chain.shape);
  ASSERT_TRUE(part);
  // Nodes 1, 2, 3 after the last layer; what they take after the first is 1 to 4, and 1 to 5
  // before.
  EXPECT_EQ(part->rows(2), 3 * 3);
  EXPECT_EQ(part->rows(1), 3 * 4);
  EXPECT_EQ(part->rows(0), 3 * 5);
  EXPECT_EQ(part->readout.common.forward.entries(), 0);
  EXPECT_EQ(part->readout.left_out, std::vector<double>{3});  // nodes 0, 4 and 5
  EXPECT_DOUBLE_EQ(needed_share(plan, chain.shape), (9.0 + 12 + 15) / (3 * 18));
}

TEST(NeededPart, IsNullWhereItIsTheWholePlan) {
  Chain chain;
  chain.config_nodes = {5};
  for (int more = 0; more < 3; ++more) chain.shape.layers.push_back(chain.shape.layers[0]);
  const Plan plan = chain.plan();  // node 5 reaches all nodes in five layers
  EXPECT_EQ(needed_part(plan, chain.shape), nullptr);
  EXPECT_EQ(needed_share(plan, chain.shape), 1);
}

// A norm over the nodes before a late join: of its rows few are needed, and it takes all of them.
TEST(NeededPart, KeepsWholeGroups) {
  Chain chain;
  const LayerShape nodes{{EdgeKind::nodes}, Aggregation::sum, false},
      join{{}, Aggregation::sum, true};
  chain.shape.early_join = false;
  chain.shape.layers = {nodes, chain.shape.layers[0], join};
  const Plan plan = chain.plan();
  const auto part = needed_part(plan, chain.shape);
  ASSERT_TRUE(part);
  check_plan(*part);
  EXPECT_LT(plan.needed_rows(1), plan.rows(1));
  EXPECT_EQ(part->rows(0), 3 * 6);
  EXPECT_EQ(part->rows(1), 3 * 6);
  EXPECT_EQ(part->rows(2), 3);  // node 3
  const std::vector<double> inputs{0.3, 0.9, 1.4, 2.0, 2.7, 3.1}, states{0.5, -0.8};
  const std::vector<double> whole = PlanNetwork::scores(plan, inputs, states),
                            own = PlanNetwork::scores(*part, inputs, states);
  for (std::size_t k = 1; k < own.size(); ++k)
    EXPECT_NEAR(own[k] - own[0], whole[k] - whole[0], 1e-12);
}

TEST(NeededPart, IsNullWhereNothingIsNeeded) {
  const Chain chain;
  Plan plan = chain.plan();
  plan.needed_counts[1].rows = 0;
  EXPECT_EQ(needed_part(plan, chain.shape), nullptr);
}

}  // namespace
}  // namespace tpudist
