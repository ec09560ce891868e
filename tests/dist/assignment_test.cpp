#include "dist/collectives/assignment.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "core/error.hpp"

namespace tpudist {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Items = std::vector<WorkItem>;

// Items of these costs, each a unit of its own.
Items apart(const std::vector<double>& costs) {
  Items items;
  for (const double cost : costs) items.push_back({static_cast<int>(items.size()), cost});
  return items;
}

std::vector<double> loads(const Items& items, const std::vector<int>& owner, int ranks) {
  std::vector<double> load(ranks, 0);
  for (std::size_t i = 0; i < items.size(); ++i)
    load.at(static_cast<std::size_t>(owner[i])) += items[i].cost;
  return load;
}

TEST(AssignByCost, KeepsEightRanksBusyWithFourSlatesOfFiveMembers) {
  Items items;
  for (int i = 0; i < 20; ++i) items.push_back({i / 5, 7.0});
  EXPECT_THAT(loads(items, assign_by_cost(items, 8), 8), Each(AnyOf(2 * 7.0, 3 * 7.0)));
}

TEST(AssignByCost, GivesALargeItemARankOfItsOwn) {
  EXPECT_THAT(assign_by_cost(apart({1, 1, 1, 9, 3, 3}), 3), ElementsAre(1, 1, 2, 0, 1, 2));
}

// Contiguous shares would be 7 and 11.
TEST(AssignByCost, BalancesItemsWhoseOrderIsBad) {
  const Items items = apart({2, 5, 5, 2, 2, 2});
  EXPECT_THAT(loads(items, assign_by_cost(items, 2), 2), ElementsAre(9, 9));
}

TEST(AssignByCost, KeepsAUnitOnARankUpToFourPercentOverTheMean) {
  EXPECT_THAT(assign_by_cost(Items{{0, 54}, {0, 49}, {1, 49}, {1, 48}}, 2),
              ElementsAre(0, 0, 1, 1));  // 103 and 97
  EXPECT_THAT(assign_by_cost(Items{{0, 55}, {0, 50}, {1, 48}, {1, 47}}, 2),
              ElementsAre(0, 1, 1, 0));  // not 105 and 95
}

TEST(AssignByCost, GivesEveryUnitOneRankWhereUnitsAreEqual) {
  Items items;
  for (int i = 0; i < 20; ++i) items.push_back({i % 4, 3.0});
  const std::vector<int> owner = assign_by_cost(items, 2);
  for (std::size_t i = 4; i < 20; ++i) EXPECT_EQ(owner[i], owner[i % 4]);
  EXPECT_THAT(loads(items, owner, 2), ElementsAre(30, 30));
}

// So a rank has whole sub-trees of the sum over units, and sends few of them.
TEST(AssignByCost, MakesEqualItemsOfARankNeighbours) {
  EXPECT_THAT(assign_by_cost(apart({1, 1, 1, 1, 1, 1, 1, 1}), 2),
              ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

TEST(AssignByCost, SpreadsItemsWithoutAnyCostEvenly) {
  EXPECT_THAT(assign_by_cost(apart({0, 0, 0, 0}), 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(assign_by_cost(Items{{0, 0}, {0, 0}, {1, 0}, {1, 0}}, 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(assign_by_cost({}, 3), IsEmpty());
}

TEST(AssignByCost, LeavesRanksWithoutWorkWhereItemsAreFewer) {
  EXPECT_THAT(assign_by_cost(apart({2, 0, 1}), 5), ElementsAre(0, 2, 1));
}

TEST(AssignByCost, RefusesWhatIsNoCost) {
  EXPECT_THROW(assign_by_cost(apart({1, -1}), 2), DistError);
  EXPECT_THROW(assign_by_cost(apart({std::numeric_limits<double>::quiet_NaN()}), 2), DistError);
  const double most = std::numeric_limits<double>::max();
  EXPECT_THROW(assign_by_cost(apart({most, most}), 2), DistError);
  EXPECT_THROW(assign_by_cost(apart({1}), 0), DistError);
}

// Items of one member in a row, filled up to the longest: two members on a rank cost twice that.
double padded(std::span<const WorkItem> items) {
  std::map<int, double> of_member;
  double most = 0;
  for (const WorkItem& item : items) most = std::max(most, of_member[item.member] += item.cost);
  return static_cast<double>(of_member.size()) * most;
}

double highest(const Items& items, const std::vector<int>& owner, int ranks, const RankCost& cost) {
  double most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    Items own;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (owner[i] == rank) own.push_back(items[i]);
    most = std::max(most, cost(own));
  }
  return most;
}

// Two of each member on a rank, and not 5 beside 2.
TEST(AssignByCost, CountsWhatItemsCostTogether) {
  const Items items{{0, 5, 0}, {0, 5, 1}, {1, 2, 0}, {1, 2, 1}};
  EXPECT_THAT(assign_by_cost(items, 2, padded), ElementsAre(0, 1, 0, 1));
  // Whole units, if each unit of a rank costs 10 more.
  const RankCost passes = [](std::span<const WorkItem> own) {
    std::set<int> units;
    double cost = 0;
    for (const WorkItem& item : own) {
      units.insert(item.unit);
      cost += item.cost;
    }
    return cost + 10 * static_cast<double>(units.size());
  };
  EXPECT_EQ(highest(items, assign_by_cost(items, 2, passes), 2, passes), 20);
}

Items drawn_items() {
  Items items;
  for (const auto& [unit, cost] : *rc::gen::container<std::vector<std::pair<int, int>>>(
           rc::gen::pair(rc::gen::inRange(0, 12), rc::gen::inRange(0, 1000)))) {
    items.push_back({unit, static_cast<double>(cost)});
  }
  return items;
}

RC_GTEST_PROP(AssignByCost, GivesEachItemOneRankAndNoRankTooMuch, ()) {
  const int ranks = *rc::gen::inRange(1, 12);
  const Items items = drawn_items();
  const std::vector<int> owner = assign_by_cost(items, ranks);
  RC_ASSERT(owner.size() == items.size());
  RC_ASSERT(owner == assign_by_cost(items, ranks));
  double total = 0, largest = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    RC_ASSERT(owner[i] >= 0 && owner[i] < ranks);
    total += items[i].cost;
    largest = std::max(largest, items[i].cost);
  }
  // The rank of an item had the least load before it, or stays within 4 % of the mean.
  const double mean = total / ranks;
  const double most = std::max(1.04 * mean, mean + (1.0 - 1.0 / ranks) * largest);
  for (const double load : loads(items, owner, ranks)) RC_ASSERT(load <= most + 1e-6);
}

// A rank with only some of the items never costs more than one that has them all.
RC_GTEST_PROP(AssignByCost, NeverCostsMoreTogetherThanOnOneRank, ()) {
  const int ranks = *rc::gen::inRange(1, 6);
  Items items = drawn_items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].member = static_cast<int>(i % 3);
    items[i].cost += 1;
  }
  const std::vector<int> owner = assign_by_cost(items, ranks, padded);
  RC_ASSERT(owner.size() == items.size());
  RC_ASSERT(owner == assign_by_cost(items, ranks, padded));
  for (const int rank : owner) RC_ASSERT(rank >= 0 && rank < ranks);
  RC_ASSERT(highest(items, owner, ranks, padded) <= padded(items) + 1e-6);
}

// Equal costs are taken in their order, so they are made different.
RC_GTEST_PROP(AssignByCost, DoesNotDependOnTheOrderOfItems, ()) {
  const int ranks = *rc::gen::inRange(1, 12);
  Items items = drawn_items();
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i].cost = 4096 * items[i].cost + static_cast<double>(i);
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::minstd_rand(*rc::gen::inRange(1u, 1000u)));
  Items shuffled;
  for (const std::size_t i : order) shuffled.push_back(items[i]);
  const std::vector<int> owner = assign_by_cost(items, ranks),
                         other = assign_by_cost(shuffled, ranks);
  for (std::size_t i = 0; i < order.size(); ++i) RC_ASSERT(other[i] == owner[order[i]]);
}

}  // namespace
}  // namespace tpudist
