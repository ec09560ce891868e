#pragma once

#include <memory>

#include "dist/collectives/communicator.hpp"

namespace tpudist {

// A communicator of one rank: calls only copy.
std::unique_ptr<Communicator> make_self_communicator(MemoryKind memory = MemoryKind::host);

}  // namespace tpudist
