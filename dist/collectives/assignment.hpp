#pragma once

#include <functional>
#include <span>
#include <vector>

namespace tpudist {

struct WorkItem {
  int unit = 0;     // >= 0
  double cost = 0;  // >= 0
  int member = 0;
};

// What items cost a rank that has them all; >= 0, and 0 for none.
using RankCost = std::function<double(std::span<const WorkItem>)>;

// Returns the rank of each item, a pure function of the arguments. Items are assigned by falling
// cost; equal costs by unit, then in their order. An item goes to the rank that it makes least
// expensive of those that have its unit, if that rank's cost then is at most 4 % above the mean, else
// of all; ties go to the lowest rank. The cost of a rank is the sum of its items' costs; if all are
// zero, items weigh the same. Then items of equal cost are swapped, so that those of a rank are
// neighbours. O(n (log n + ranks)).
// With `together` this function gives the cost of a rank. Items of equal cost are not swapped then,
// but if there are at most 200 items, up to `ranks` times an item of the most expensive rank moves to
// another rank or changes places with an item there: the exchange that lowers the higher of the two
// costs most. About n^2 calls of `together`.
// Throws DistError if a cost is negative or not finite, or `ranks` is below 1.
std::vector<int> assign_by_cost(std::span<const WorkItem> items, int ranks,
                                const RankCost& together = {});

}  // namespace tpudist
