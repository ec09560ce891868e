#pragma once

#include <memory>
#include <string>

#include "dist/collectives/communicator.hpp"
#include "dist/collectives/rank_activity.hpp"

namespace tpudist {

struct NcclOptions {
  RankActivity* activity = nullptr;  // may be null; must outlive the communicator
  double timeout = 0;                // dist.timeout, in seconds; 0: waits for ever
};

// NCCL over the ranks of `world` on their devices; `world` distributes the NCCL id. Collective.
// Its work is queued on the default stream, so behind everything that was queued there before, and
// has finished when a call returns. It cannot be split.
//
// It is never destroyed or aborted after an error, since both wait for other ranks: an exception
// that passes it leaves it to the end of the process. The rank must then end, and tell the others
// otherwise than by NCCL (end_all_ranks), also where others are still in this function.
//
// Throws DistError on every rank when a rank has no such GPU, or two ranks share one, which NCCL
// does not support; and on one rank alone when a call of CUDA or NCCL fails, or takes longer than
// the timeout.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int device,
                                                     const NcclOptions& options = {});

// One line: the NCCL version of the header used at compile time, that of the loaded library, and
// whether they agree.
std::string nccl_version_report();

}  // namespace tpudist
