#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dist/collectives/communicator.hpp"
#include "dist/collectives/device_memory.hpp"

namespace tpudist {

// Position of this rank on its node, from MPI_Comm_split_type(SHARED), and its GPU.
struct NodeTopology {
  int node = 0, nodes = 1;              // number of this node; nodes are ordered by their first
                                        // ranks
  int local_rank = 0, local_ranks = 1;  // rank within the node
  int device = -1;                      // CUDA device index, -1 = CPU
  Device gpu = {};                      // that device
};

// Collective. `device` is "auto", "cpu" or "cuda". With "cuda", or with "auto" when every node has
// a GPU for each of its ranks, each rank takes a GPU of its own, see share_devices. Else "auto" is
// the CPU, and rank 0 logs why; "cuda" throws ConfigError on every rank. GPUs that the kernels do
// not run on do not count.
NodeTopology place_rank(Communicator& world, std::string_view device);

// Gives as many ranks of a node as possible a GPU of their own: in rank order the first free one it
// sees, and where none is free, one whose owner can take another. `visible[rank]`: ids of devices.
// Returns an index into it for each rank, or -1 where none is left. Where all ranks see all GPUs it
// is the local rank; where the batch system shows each rank one GPU (--gpus-per-task=1), it is 0.
std::vector<int> share_devices(const std::vector<std::vector<std::string>>& visible);

}  // namespace tpudist
