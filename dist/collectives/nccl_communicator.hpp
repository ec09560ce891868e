#pragma once

#include <memory>
#include <string>

#include "dist/collectives/communicator.hpp"

namespace tpudist {

// NCCL over the ranks of `world` on their devices; `world` distributes the NCCL id. Collective.
// Every call runs on a stream of its own: it waits for earlier work on the device's blocking
// streams (such as the default stream), and has finished when it returns. Throws DistError on every
// rank when a rank has no such GPU, or two ranks share one, which NCCL does not support.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int device);

// One line: the NCCL version of the header used at compile time, that of the loaded library, and
// whether they agree.
std::string nccl_version_report();

}  // namespace tpudist
