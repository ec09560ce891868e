#include "dist/collectives/assignment.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace tpudist {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> items_per_rank(const std::vector<int>& owner, int ranks) {
  std::vector<int> items(ranks, 0);
  for (const int rank : owner) ++items[rank];
  return items;
}

TEST(AssignByCost, KeepsEightRanksBusyWithFourSlatesOfFiveMembers) {
  const std::vector<double> costs(4 * 5, 7.0);
  EXPECT_THAT(items_per_rank(assign_by_cost(costs, 8), 8), Each(AnyOf(2, 3)));
}

TEST(AssignByCost, GivesALargeItemARankOfItsOwn) {
  EXPECT_THAT(assign_by_cost(std::vector<double>{1, 1, 1, 9, 3, 3}, 3),
              ElementsAre(0, 0, 0, 1, 2, 2));
}

TEST(AssignByCost, PutsFreeItemsBesideTheirNeighbours) {
  EXPECT_THAT(assign_by_cost(std::vector<double>{0, 4, 0, 0, 4, 0}, 2),
              ElementsAre(0, 0, 1, 1, 1, 1));
}

TEST(AssignByCost, SpreadsItemsWithoutAnyCostEvenly) {
  EXPECT_THAT(assign_by_cost(std::vector<double>(4, 0.0), 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(assign_by_cost({}, 3), IsEmpty());
}

TEST(AssignByCost, RefusesWhatIsNoCost) {
  EXPECT_THROW(assign_by_cost(std::vector<double>{1, -1}, 2), DistError);
  EXPECT_THROW(assign_by_cost(std::vector<double>{std::numeric_limits<double>::quiet_NaN()}, 2),
               DistError);
  EXPECT_THROW(assign_by_cost(std::vector<double>(2, std::numeric_limits<double>::max()), 2),
               DistError);
  EXPECT_THROW(assign_by_cost(std::vector<double>{1}, 0), DistError);
}

RC_GTEST_PROP(AssignByCost, IsContiguousAndNearlyEven, ()) {
  const int ranks = *rc::gen::inRange(1, 12);
  std::vector<double> costs;
  for (const int cost : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))) {
    costs.push_back(cost);
  }
  const std::vector<int> owner = assign_by_cost(costs, ranks);
  RC_ASSERT(owner.size() == costs.size());
  RC_ASSERT(std::is_sorted(owner.begin(), owner.end()));
  // Nobody has more than a fair share and one item, whose half may stick out at either end.
  std::vector<double> load(ranks, 0);
  double total = 0, largest = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    RC_ASSERT(owner[i] >= 0 && owner[i] < ranks);
    load[owner[i]] += costs[i];
    total += costs[i];
    largest = std::max(largest, costs[i]);
  }
  for (const double rank_load : load) RC_ASSERT(rank_load <= total / ranks + largest + 1e-6);
}

}  // namespace
}  // namespace tpudist
