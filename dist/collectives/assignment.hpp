#pragma once

#include <span>
#include <vector>

namespace tpudist {

// Assigns items, in their order, to ranks as contiguous runs of nearly equal cost. The total cost
// is cut into one equal share per rank; item i goes to the rank in whose share the middle of its
// cost falls. A pure function of the costs and the number of ranks. Costs are >= 0; an item of cost
// zero goes with its neighbour. O(n).
std::vector<int> assign_by_cost(std::span<const double> costs, int ranks);

}  // namespace tpudist
