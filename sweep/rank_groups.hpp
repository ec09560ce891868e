#pragma once

#include <vector>

namespace tpudist {

// Cuts `ranks` ranks into groups of these sizes, in rank order; the last size is repeated, and the last
// group takes what is left. Empty `sizes`: one group of all. Returns the group of each rank. Throws
// ConfigError when a size is below 1, or when sizes are left over.
std::vector<int> group_of_ranks(const std::vector<int>& sizes, int ranks);

}  // namespace tpudist
