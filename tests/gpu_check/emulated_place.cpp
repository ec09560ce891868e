// The program tpudist with LibTorch's tensors on the CPU in the place of each rank's GPU, and the
// project's kernels compiled as C++. Objects come before libraries when a program is linked, so these
// stand in for the functions of dist/ and models/network.

#include "dist/collectives/nccl_communicator.hpp"
#include "dist/collectives/node_topology.hpp"
#include "models/device/device_backend.hpp"
#include "models/network/executor.hpp"

namespace tpudist {

DeviceContext make_device_context(int device_index, Precision precision) {
  if (device_index < 0) return {};
  require_precision(precision, 9, 0);
  return {at::kCPU, make_device_backend};
}

// All ranks are on this machine, and each has a device unless it asks for the CPU.
NodeTopology place_rank(Communicator& world, std::string_view device) {
  NodeTopology topology;
  topology.local_rank = world.rank();
  topology.local_ranks = world.size();
  if (device == "cpu") return topology;
  topology.device = world.rank();
  topology.gpu = {.id = "emulated", .name = "emulated", .major = 9, .minor = 0};
  return topology;
}

// The device's memory is the host's, so MPI takes it.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int, RankActivity*,
                                                     double) {
  return world.split(0);
}
std::string nccl_version_report() {
  return "NCCL: not part of the emulation";
}

}  // namespace tpudist
