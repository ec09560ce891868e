#pragma once

#include <string>
#include <vector>

#include "dist/collectives/node_topology.hpp"

namespace tpudist {

// Number of whole cores, at least 1, for rank `rank` of one node, if the ranks that may run on a
// core share it evenly. masks[r][i] is '1' if rank r may use core i. `quota`: cores of all ranks of
// the node together (cpu_quota); 0: no quota.
int share_of_cores(const std::vector<std::string>& masks, int rank, double quota = 0);

// The CPU affinities (masks as above) that mpirun, srun or a container has set for the ranks of
// this node, in the order of local ranks. Collective.
std::vector<std::string> core_masks(Communicator& world, const NodeTopology& topology);

// Cores that mpirun may use on this node, if it bound its ranks to cores; else 0.
int cores_of_binding_mpirun();

// A warning, with advice, if something slows down the ranks of a node; else empty. Rank `rank` has
// more threads than cores; the ranks, with `threads` threads each, have more threads than their
// `quota` (0: no quota); or mpirun bound the ranks to at most half of `unbound` cores (0: mpirun
// bound none).
std::string core_warning(const std::vector<std::string>& masks, int rank, int threads, int unbound,
                         double quota = 0);

// A note if there are more ranks than cores; else empty.
std::string crowd_note(const std::vector<std::string>& masks);

}  // namespace tpudist
