#include "train/units/batch_plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

namespace tpudist {
namespace {

constexpr std::uint64_t kSelection = 42;

// Six graphs of 100 nodes in three folds, four slates of ten configurations, five members.
struct Fixture {
  Experiment experiment;
  std::vector<std::int64_t> rows = std::vector<std::int64_t>(6, 200);
  std::vector<SlateCost> costs = std::vector<SlateCost>(6, SlateCost{1000, 1000});
  std::vector<int> fold{0, 0, 1, 1, 2, 2};

  Fixture() {
    experiment.batch.slates = 4;
    experiment.batch.configs = 10;
    experiment.ensemble.members = 5;
    experiment.ensemble.folds = 3;
    experiment.ensemble.vary_fold = true;
  }
  SlateOrder order() const { return SlateOrder({1, 4, 10, DrawMode::rows}, rows, kSelection); }
  BatchPlanner planner(const SlateOrder& order, int ranks) const {
    return BatchPlanner(experiment, order, costs, fold, ranks);
  }
};

TEST(BatchPlan, WeightsOfAMemberSumToOneAndSkipItsFold) {
  const Fixture fixture;
  const SlateOrder order = fixture.order();
  const BatchPlanner planner = fixture.planner(order, 1);
  for (std::int64_t step = 0; step < 50; ++step) {
    const BatchPlan plan = planner.plan(step);
    for (int m = 0; m < 5; ++m) {
      double sum = 0;
      bool any = false;
      for (std::size_t i = 0; i < 4; ++i) {
        const bool held_out = fixture.fold[plan.slates[i].graph] == m % 3;
        EXPECT_EQ(plan.weights[m][i] > 0, !held_out && plan.slates[i].weight > 0);
        EXPECT_EQ(plan.owners.of(m, static_cast<int>(i)) >= 0, plan.weights[m][i] > 0);
        sum += plan.weights[m][i];
        any = any || plan.weights[m][i] > 0;
      }
      EXPECT_NEAR(sum, any ? 1.0 : 0.0, 1e-12);
    }
  }
}

TEST(BatchPlan, KeepsEightRanksBusyWithFourSlatesAndFiveMembers) {
  Fixture fixture;
  fixture.experiment.ensemble.vary_fold = false;
  const SlateOrder order = fixture.order();
  const BatchPlan plan = fixture.planner(order, 8).plan(3);
  std::vector<int> items(8, 0);
  for (const int owner : plan.owners.owner) ++items[owner];
  for (const int count : items) {
    EXPECT_GE(count, 2);
    EXPECT_LE(count, 3);
  }
}

// So a rank plans two units and not four, and the sum over units has one sub-tree on each rank.
TEST(BatchPlan, GivesTwoRanksWholeNeighbouringUnitsOfEqualCost) {
  Fixture fixture;
  fixture.experiment.ensemble.vary_fold = false;
  const SlateOrder order = fixture.order();
  const BatchPlan plan = fixture.planner(order, 2).plan(3);
  for (int m = 0; m < 5; ++m) {
    for (int unit = 0; unit < 4; ++unit) EXPECT_EQ(plan.owners.of(m, unit), unit / 2);
  }
}

// One graph's slates cost twice as much as all others of a batch together.
TEST(BatchPlan, SharesUnitsByTheirCost) {
  Fixture fixture;
  fixture.experiment.ensemble.members = 1;
  fixture.experiment.ensemble.vary_fold = false;
  fixture.costs.assign(6, SlateCost{1, 1});
  fixture.costs[2].first = 6;
  const SlateOrder order = fixture.order();
  const BatchPlanner planner = fixture.planner(order, 2);
  int seen = 0;
  for (std::int64_t step = 0; step < 50; ++step) {
    const BatchPlan plan = planner.plan(step);
    const auto dear = [&](int i) { return plan.slates[i].graph == 2; };
    if (dear(0) + dear(1) + dear(2) + dear(3) != 1 || !dear(0)) continue;
    ++seen;
    EXPECT_EQ(plan.owners.owner, (std::vector<int>{0, 1, 1, 1}));
    EXPECT_EQ(plan.rank_cost, (std::vector<double>{6, 3}));
  }
  EXPECT_GT(seen, 0);
}

// Graphs of unequal sizes, five members in five folds, and a rank that computes all its leaves in one
// pass, whose launches take as long as 1.5 mean leaves, as estimated for nlp.yaml. The mean of 8
// ranks takes 90 % of the slowest one's time, which is shorter than where leaves are added up.
TEST(BatchPlan, BalancesRanksByTheirJoinedPasses) {
  for (const int slates : {4, 10}) {
    Fixture fixture;
    fixture.experiment.batch.slates = slates;
    fixture.experiment.ensemble.folds = 5;
    fixture.rows.assign(40, 200);
    fixture.costs.clear();
    fixture.fold.clear();
    for (int g = 0; g < 40; ++g) {
      const double cost = 1e10 * std::exp(0.05 * g);  // 1 to 7
      fixture.costs.push_back({cost, cost});
      fixture.fold.push_back(g * 7 % 5);
    }
    const SlateOrder order({1, slates, 10, DrawMode::rows}, fixture.rows, kSelection);
    const BatchPlanner joined(fixture.experiment, order, fixture.costs, fixture.fold, 8,
                              /*joins=*/true),
        added(fixture.experiment, order, fixture.costs, fixture.fold, 8);
    constexpr double kPass = 4.5e10;
    double mean = 0, slowest = 0, slowest_of_added = 0;
    for (std::int64_t step = 0; step < 30; ++step) {
      const BatchPlan plan = joined.plan(step);
      std::vector<double> costs;
      for (const SlateId& slate : plan.slates) costs.push_back(fixture.costs[slate.graph].first);
      double most = 0, most_of_added = 0;
      for (const double cost : plan.rank_cost) {
        mean += (cost + kPass) / 8;
        most = std::max(most, cost + kPass);
      }
      for (const double work : joined.rank_work(added.plan(step), costs))
        most_of_added = std::max(most_of_added, work + kPass);
      slowest += most;
      slowest_of_added += most_of_added;
    }
    EXPECT_GT(mean, 0.9 * slowest) << slates;
    EXPECT_LT(slowest, slowest_of_added) << slates;
  }
}

// A member that holds one of four equal units out computes it in the pass of the others.
TEST(BatchPlan, CountsWhatAJoinedPassComputes) {
  Fixture fixture;
  fixture.experiment.ensemble.folds = 5;
  fixture.fold = {0, 0, 1, 1, 2, 2};
  const SlateOrder order = fixture.order();
  const BatchPlanner apart = fixture.planner(order, 1),
                     joined(fixture.experiment, order, fixture.costs, fixture.fold, 1,
                            /*joins=*/true);
  const std::vector<double> units(4, 10);
  EXPECT_DOUBLE_EQ(apart.rank_work(apart.plan(0), units)[0], 4 * 4 * 10);
  EXPECT_DOUBLE_EQ(joined.rank_work(joined.plan(0), units)[0], 5 * 4 * 10);
}

// Slates in one plan share rows: each after the first costs less.
TEST(BatchPlan, CountsMergedSlatesOnce) {
  Fixture fixture;
  fixture.experiment.batch.unit = UnitKind::graph;
  fixture.experiment.batch.unit_slates = 4;
  fixture.experiment.ensemble.members = 1;
  fixture.experiment.ensemble.vary_fold = false;
  fixture.costs.assign(6, SlateCost{100, 10});
  const SlateOrder order = fixture.order();
  for (std::int64_t step = 0; step < 20; ++step) {
    const BatchPlan plan = fixture.planner(order, 1).plan(step);
    EXPECT_DOUBLE_EQ(plan.rank_cost[0], 100 * plan.units() + 10 * (4 - plan.units()));
  }
}

TEST(BatchPlan, IsTheSameWorkForAnyNumberOfRanks) {
  const Fixture fixture;
  const SlateOrder order = fixture.order();
  const BatchPlan one = fixture.planner(order, 1).plan(7),
                  three = fixture.planner(order, 3).plan(7);
  EXPECT_EQ(one.weights, three.weights);
  for (std::size_t i = 0; i < one.slates.size(); ++i) {
    EXPECT_EQ(one.slates[i].graph, three.slates[i].graph);
    EXPECT_EQ(one.slates[i].number, three.slates[i].number);
  }
  EXPECT_DOUBLE_EQ(std::accumulate(one.rank_cost.begin(), one.rank_cost.end(), 0.0),
                   std::accumulate(three.rank_cost.begin(), three.rank_cost.end(), 0.0));
}

TEST(BatchPlan, GroupsSeveralSlatesIntoAUnit) {
  Fixture fixture;
  fixture.experiment.batch.unit_slates = 3;
  const SlateOrder order = fixture.order();
  const BatchPlanner planner = fixture.planner(order, 2);
  EXPECT_EQ(planner.plan(0).unit_begin, (std::vector<int>{0, 3, 4}));
  EXPECT_EQ(planner.plan(0).owners.leaves, 2);
}

TEST(BatchPlan, PutsTheSlatesOfAGraphIntoAUnit) {
  Fixture fixture;
  fixture.experiment.batch.slates = 8;
  fixture.experiment.batch.unit = UnitKind::graph;
  fixture.experiment.batch.unit_slates = 2;
  const SlateOrder order({1, 8, 10, DrawMode::rows}, fixture.rows, kSelection);
  const BatchPlanner planner = fixture.planner(order, 2);
  for (std::int64_t step = 0; step < 20; ++step) {
    const BatchPlan plan = planner.plan(step);
    ASSERT_EQ(plan.unit_begin.front(), 0);
    ASSERT_EQ(plan.unit_begin.back(), 8);
    for (int unit = 0; unit < plan.units(); ++unit) {
      const int begin = plan.unit_begin[unit], end = plan.unit_begin[unit + 1];
      EXPECT_GE(end, begin + 1);
      EXPECT_LE(end, begin + 2);
      for (int i = begin; i < end; ++i) EXPECT_EQ(plan.slates[i].graph, plan.slates[begin].graph);
    }
    std::set<std::pair<int, std::int64_t>> drawn, planned;
    for (int i = 0; i < 8; ++i) {
      drawn.emplace(order.item(step, i).graph, order.item(step, i).number);
      planned.emplace(plan.slates[i].graph, plan.slates[i].number);
    }
    EXPECT_EQ(planned, drawn);
    EXPECT_EQ(plan.owners.leaves, plan.units());
  }
}

}  // namespace
}  // namespace tpudist
