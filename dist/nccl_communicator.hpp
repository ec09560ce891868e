#pragma once

#include <memory>
#include <string>

#include "dist/communicator.hpp"

namespace tpudist {

// NCCL over the ranks of `world` on their devices; the NCCL id travels by `world`. Collective.
// Every call runs on a stream of its own: it waits for what was put on blocking streams (the
// default stream) of the device before, and is done when it returns. Throws DistError, on every
// rank, when one has no such GPU or two share one, which NCCL does not do.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int device);

// One line: the NCCL version of the header that tpudist was compiled with, that of the library that
// is loaded, and whether they agree.
std::string nccl_version_report();

}  // namespace tpudist
