#pragma once

#include <vector>

namespace tpudist {

// Cuts `ranks` ranks into groups of these sizes, in rank order, and returns the group of each rank.
// Repeats the last size; the last group takes the remaining ranks, which may be fewer. Empty
// `sizes`: one group of all ranks. Throws ConfigError when a size is below 1, or when there are
// more sizes than groups.
std::vector<int> group_of_ranks(const std::vector<int>& sizes, int ranks);

}  // namespace tpudist
