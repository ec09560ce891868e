#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/collectives/communicator.hpp"
#include "doctor/job_facts.hpp"

namespace tpudist {

// Times all_reduce of float32 over all ranks, from 8 B to 64 MiB in factors of eight, a second or
// two in all. The first calls of each size are not counted. Empty for one rank. `communicator`:
// host or device memory. Collective.
std::vector<AllReduceSpeed> time_all_reduce(Communicator& communicator);

// Times copies of memory larger than any cache (2 x 64 MiB per rank), first by one rank of each
// node, then by all. `node`: the ranks of this rank's node; `number`: that of the node. Collective
// over `world`.
std::vector<MemorySpeed> time_memory(Communicator& world, Communicator& node, int number);

// The median; of an even number of values the upper one. At least one value.
double upper_median(std::vector<double> values);

}  // namespace tpudist
