#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/communicator.hpp"
#include "doctor/job_facts.hpp"

namespace tpudist {

// Times all_reduce of float32 over all ranks, 8 B to 64 MiB in steps of eight, one size after the
// other, a second or two in all; the first calls of each size are not counted. Nothing for one rank.
// `communicator`: over host or device memory. Collective.
std::vector<AllReduceSpeed> time_all_reduce(Communicator& communicator);

// Times copies of memory that no cache holds (2 x 64 MiB a rank), first by one rank of each node and
// then by all. `node`: the ranks of this rank's node, `number` the node's. Collective over `world`.
std::vector<MemorySpeed> time_memory(Communicator& world, Communicator& node, int number);

// The median; of an even number the upper one. `values`: at least one.
double upper_median(std::vector<double> values);

}  // namespace tpudist
