#include "train/units/batch_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "dist/collectives/communicator.hpp"
#include "tests/train/tiny_data.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

// What an experiment becomes, and its costs from this process alone.
struct CostsFixture {
  explicit CostsFixture(std::vector<std::string> overrides)
      : experiment(tiny_experiment(std::move(overrides))),
        setup(experiment, experiment.data.training(), pool, -1, 1, *alone) {}

  std::vector<SlateCost> costs(Communicator& world, int most_samples = 256) {
    return estimate_slate_costs(experiment, setup.data, setup.units, setup.order, pool, world,
                                most_samples);
  }
  double true_work(const SlateId& id) const {
    const std::vector<Slate> slates{setup.data.slate(id.graph, setup.order.rows(id))};
    return setup.units.estimate(slates).step_work();
  }

  ThreadPool pool{2};
  std::unique_ptr<Communicator> alone = make_self_communicator();
  const Experiment experiment;
  const TrainingSetup setup;
};

TEST(SlateCosts, AreThoseOfTheFirstSlate) {
  CostsFixture fixture({"batch.configs=8"});
  const std::vector<SlateCost> costs = fixture.costs(*fixture.alone);
  ASSERT_EQ(static_cast<int>(costs.size()), fixture.setup.data.size());
  for (int g = 0; g < fixture.setup.data.size(); ++g) {
    EXPECT_EQ(costs[g].first, fixture.true_work({.graph = g}));
    EXPECT_EQ(costs[g].further, costs[g].first);
  }
}

// Of a dense plan both are counted: from the graph, and from the plan that was built.
TEST(SlateCosts, CountTheNeighboursThatAreRead) {
  for (const char* layer : {"{layer: sage, width: 4}", "{layer: gcn, width: 4}",
                            "{layer: gat, width: 4}", "{layer: virtual_node, hidden: 4}"}) {
    CostsFixture fixture({std::string("model={blocks: [") + layer + "]}", "plan=dense"});
    const SlateRows rows{0, {0, 1, 2}};
    const Slate slate = fixture.setup.data.slate(rows.graph, rows.rows);
    const Unit unit = fixture.setup.units.build({&rows, 1});
    const PlanCost estimated = fixture.setup.units.compare({&slate, 1}).dense_cost,
                   built =
                       plan_cost(*unit.input.plan,
                                 fixture.experiment.network.work(fixture.setup.network.schema()));
    EXPECT_EQ(estimated.entries, built.entries) << layer;
    EXPECT_GT(estimated.entries, 0) << layer;
  }
}

TEST(SlateCosts, AFurtherSlateInThePlanCostsLess) {
  CostsFixture fixture({"batch.configs=8", "batch.slates=6", "batch.unit=graph"});
  const std::vector<SlateCost> costs = fixture.costs(*fixture.alone);
  for (int g = 0; g < fixture.setup.data.size(); ++g) {
    const SlateCost& cost = costs[g];
    EXPECT_GT(cost.further, 0);
    if (fixture.setup.order.slates_of(g) > 1) EXPECT_LT(cost.further, cost.first);
    EXPECT_DOUBLE_EQ(cost.of(3), cost.first + 2 * cost.further);
  }
}

// Graphs without a sample plan get that of a smaller one, in proportion to their size.
TEST(SlateCosts, AFewSamplesStandForManyGraphs) {
  CostsFixture fixture(
      {"data.collection=tile:xla", "model.preset=latenciaga_tile", "ensemble.folds=none"});
  ASSERT_GT(fixture.setup.data.size(), 3);
  const auto all = fixture.costs(*fixture.alone), few = fixture.costs(*fixture.alone, 3);
  int equal = 0;
  for (std::size_t g = 0; g < all.size(); ++g) {
    equal += all[g].first == few[g].first;
    EXPECT_GT(few[g].first, 0);
    EXPECT_LT(few[g].first, 20 * all[g].first);
    EXPECT_GT(few[g].first, all[g].first / 20);
  }
  EXPECT_GE(equal, 3);
  EXPECT_LT(equal, static_cast<int>(all.size()));
}

TEST(SlateCosts, AreTheSameForSlatesInChunks) {
  CostsFixture whole({"batch.configs=8", "plan=dense"}),
      chunks({"batch.configs=8", "batch.config_chunk=4", "plan=dense"});
  const auto a = whole.costs(*whole.alone), b = chunks.costs(*chunks.alone);
  for (std::size_t g = 0; g < a.size(); ++g) EXPECT_NEAR(b[g].first / a[g].first, 1, 0.3);
}

// Mean rank / slowest rank over some steps by the true plans, with owners that go by `costs`.
double balance(const CostsFixture& fixture, const std::vector<SlateCost>& costs, int ranks) {
  const BatchPlanner planner(fixture.experiment, fixture.setup.order, costs, {}, ranks);
  double total = 0, slowest = 0;
  for (std::int64_t step = 0; step < 20; ++step) {
    const BatchPlan plan = planner.plan(step);
    std::vector<double> work(ranks, 0.0);
    for (int unit = 0; unit < plan.units(); ++unit) {
      const double cost = fixture.true_work(plan.slates[unit]);
      for (int m = 0; m < fixture.experiment.ensemble.members; ++m) {
        const int owner = plan.owners.of(m, unit);
        if (owner >= 0) work[owner] += cost;
      }
    }
    total += std::accumulate(work.begin(), work.end(), 0.0);
    slowest += *std::max_element(work.begin(), work.end());
  }
  return total / ranks / slowest;
}

TEST(SlateCosts, BalanceRanksBetterThanTheSizeOfGraphs) {
  CostsFixture fixture({"batch.configs=16", "batch.slates=8", "ensemble.folds=none"});
  std::vector<SlateCost> sizes;
  for (int g = 0; g < fixture.setup.data.size(); ++g)
    sizes.push_back({static_cast<double>(fixture.setup.data.graph(g).nodes), 0});
  const double by_plans = balance(fixture, fixture.costs(*fixture.alone), 4);
  EXPECT_GE(by_plans, balance(fixture, sizes, 4));
  EXPECT_GT(by_plans, 0.8);
}

TEST(LargestUnit, IsOneThatAMemberTrainsOn) {
  for (const char* member : {"0", "1"}) {
    for (const char* steps : {"0", "1", "1000"}) {
      const CostsFixture fixture({"ensemble={members: 1, vary: [init, fold], folds: 2}",
                                  std::string("ensemble.first_member=") + member,
                                  std::string("train.steps=") + steps});
      const std::vector<SlateRows> slates = largest_unit(fixture.setup);
      ASSERT_FALSE(slates.empty());
      EXPECT_EQ(fixture.setup.planner.learners(slates.front().graph), 1) << member << " " << steps;
    }
  }
}

}  // namespace
}  // namespace tpudist::test
