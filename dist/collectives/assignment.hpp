#pragma once

#include <span>
#include <vector>

namespace tpudist {

struct WorkItem {
  int unit = 0;     // >= 0; each of its ranks makes the unit's preparations once
  double cost = 0;  // >= 0
};

// Returns the rank of each item. Items are assigned by falling cost; equal costs by unit, then in
// their order. An item goes to the least loaded rank that has its unit, if its load then is at most
// 4 % above the mean, else to the least loaded rank; ties go to the lowest rank. Then items of
// equal cost are swapped, so that those of a rank are neighbours. If all costs are zero, items
// weigh the same. A pure function of the items and the number of ranks. O(n (log n + ranks)).
std::vector<int> assign_by_cost(std::span<const WorkItem> items, int ranks);

}  // namespace tpudist
