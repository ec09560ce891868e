#pragma once

#include <string>
#include <vector>

#include "dist/collectives/node_topology.hpp"

namespace tpudist {

// Number of whole cores, at least 1, for rank `rank` of one node, if every core is shared evenly by
// the ranks that may run on it. masks[r][i] is '1' where rank r may use core i. `quota`: of all
// ranks of the node together, as cpu_quota gives it; 0: none.
int share_of_cores(const std::vector<std::string>& masks, int rank, double quota = 0);

// The CPU affinities set by mpirun, srun or a container for the ranks of this node, as above, in
// the order of local ranks. Collective.
std::vector<std::string> core_masks(Communicator& world, const NodeTopology& topology);

// The same for this rank. Collective.
int share_of_cores(Communicator& world, const NodeTopology& topology);

// Cores that mpirun may use on this node, if it bound its ranks to cores; else 0.
int cores_of_binding_mpirun();

// A warning, with advice, about what slows down the ranks of a node: rank `rank` has more threads
// than cores, the ranks, with as many threads each, have more than their `quota` (0: none), or
// mpirun bound the ranks to at most half of `unbound` cores (0: it bound none). Empty where none is
// so.
std::string core_warning(const std::vector<std::string>& masks, int rank, int threads, int unbound,
                         double quota = 0);

// A note that there are more ranks than cores; empty where there are not.
std::string crowd_note(const std::vector<std::string>& masks);

}  // namespace tpudist
