#pragma once

#include <string>
#include <vector>

#include "dist/node_place.hpp"

namespace tpudist {

// Whole cores that fall to rank `rank` of one node, at least 1, when every core is shared evenly by
// the ranks that are allowed to run on it. masks[r][i] is '1' where rank r may use core i.
int share_of_cores(const std::vector<std::string>& masks, int rank);

// That share for this rank, by the CPU affinity that mpirun, srun or a container has set.
// Collective.
int share_of_cores(Communicator& world, const NodePlace& place);

}  // namespace tpudist
