#pragma once

#include <span>
#include <vector>

namespace tpudist {

struct WorkItem {
  int unit = 0;  // >= 0; items of one unit share preparations, which each of their ranks makes once
  double cost = 0;  // >= 0
};

// Returns the rank of each item. The most expensive item comes first, equal ones by unit and then in
// their order. It goes to a rank that has its unit already, if that rank's load stays within 4 % of
// the mean, else to the rank with the least load; of equal ranks to the lowest. At last items of
// equal cost change places, so that those of a rank are neighbours. If all costs are zero, items
// have equal weight. A pure function of the items and the number of ranks. O(n (log n + ranks)).
std::vector<int> assign_by_cost(std::span<const WorkItem> items, int ranks);

}  // namespace tpudist
