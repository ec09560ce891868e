#pragma once

#include <string>
#include <vector>

#include "dist/node_topology.hpp"

namespace tpudist {

// Whole cores that fall to rank `rank` of one node, at least 1, when every core is shared evenly by
// the ranks that are allowed to run on it. masks[r][i] is '1' where rank r may use core i.
int share_of_cores(const std::vector<std::string>& masks, int rank);

// The CPU affinities that mpirun, srun or a container has set for the ranks of this rank's node, as above,
// in the order of their local ranks. Collective.
std::vector<std::string> core_masks(Communicator& world, const NodeTopology& place);

// That share for this rank. Collective.
int share_of_cores(Communicator& world, const NodeTopology& place);

// Cores that mpirun could have given to the ranks of its node, where it bound them to some; else 0.
int cores_of_binding_mpirun();

// What slows the ranks of a node down, and what to do: rank `rank` has more threads than cores, or mpirun
// bound the ranks to at most half of `unbound` cores (0: it bound none). Empty where nothing does.
std::string core_warning(const std::vector<std::string>& masks, int rank, int threads, int unbound);

// Says that there are more ranks than cores; empty where there are not.
std::string crowd_note(const std::vector<std::string>& masks);

}  // namespace tpudist
