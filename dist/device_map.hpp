#pragma once

#include <string>
#include <vector>

namespace tpudist {

// Gives each rank of a node a GPU of its own: in rank order, the first one it sees that no other
// has taken. `visible[rank]` holds the ids of the devices that the rank sees; the answer is an
// index into it, or -1 where none is left. Where all ranks see all GPUs this is the local rank;
// where the batch system shows each rank just one (--gpus-per-task=1), it is 0.
std::vector<int> share_devices(const std::vector<std::vector<std::string>>& visible);

}  // namespace tpudist
