#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dist/collectives/communicator.hpp"

namespace tpudist {

// Position of this rank on its node, from MPI_Comm_split_type(SHARED), and its GPU.
struct NodeTopology {
  int node = 0, nodes = 1;              // number of this node; nodes are ordered by their first
                                        // ranks
  int local_rank = 0, local_ranks = 1;  // rank within the node
  int device = -1;                      // CUDA device index, -1 = CPU
};

// Collective. `device` is "auto", "cpu" or "cuda". With "cuda", or with "auto" when every node has
// a GPU for each of its ranks, each rank takes a GPU of its own: the one of its local rank, or the
// only one that the batch system shows it. Throws ConfigError on every rank when "cuda" is
// requested and a node has fewer GPUs than ranks.
NodeTopology place_rank(Communicator& world, std::string_view device);

// Gives each rank of a node a GPU of its own: in rank order, the first one it sees that no other
// rank has taken. `visible[rank]` holds the ids of the devices that the rank sees. Returns an index
// into it for each rank, or -1 where none is left. Where all ranks see all GPUs the index is the
// local rank. Where the batch system shows each rank one GPU (--gpus-per-task=1), it is 0.
std::vector<int> share_devices(const std::vector<std::vector<std::string>>& visible);

}  // namespace tpudist
