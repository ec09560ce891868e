#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dist/collectives/communicator.hpp"
#include "dist/collectives/device_memory.hpp"

namespace tpudist {

// The position of this rank on its node (MPI_Comm_split_type with SHARED), and its GPU.
struct NodeTopology {
  int node = 0, nodes = 1;              // number of this node; nodes are ordered by their first
                                        // ranks
  int local_rank = 0, local_ranks = 1;  // rank within the node
  int device = -1;                      // CUDA device index, -1 = CPU
  Device gpu = {};                      // that device
};

// Collective. `device` is "auto", "cpu" or "cuda". With "cuda" or "auto" each rank takes a GPU of
// its own (share_devices). If a node has too few, "cuda" throws ConfigError on every rank; "auto"
// takes the CPU on every rank, and rank 0 logs why. GPUs that the kernels do not run on do not
// count.
NodeTopology place_rank(Communicator& world, std::string_view device);

// Gives as many ranks of a node as possible a GPU of their own. In rank order, each takes the first
// free GPU that it sees, or else the GPU of a rank that can move to another. `visible[rank]`: ids
// of devices. Returns an index into it for each rank, -1 if none is left: the local rank if all
// ranks see all GPUs, 0 if the batch system shows each rank one (--gpus-per-task=1).
std::vector<int> share_devices(const std::vector<std::vector<std::string>>& visible);

}  // namespace tpudist
