#pragma once

#include <memory>
#include <string>

#include "dist/collectives/communicator.hpp"
#include "dist/collectives/rank_activity.hpp"

namespace tpudist {

// NCCL over the ranks of `world` on their devices; `world` distributes the NCCL id. Collective.
// Work is queued on the default stream, after all earlier work there, and has finished when a call
// returns. The communicator cannot be split. It reports its calls to `activity`, which may be null
// and must outlive it. `timeout`: dist.timeout, in seconds; 0: waits for ever.
//
// After an error the communicator is neither destroyed nor aborted, since both wait for other
// ranks: it is left to the end of the process. The rank must then end, and inform the others
// without NCCL (end_all_ranks), even if some are still in this function.
//
// Throws DistError on every rank if a rank lacks its GPU or two ranks share one, which NCCL
// refuses. Throws on one rank alone if a call of CUDA or NCCL fails or exceeds the timeout.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int device,
                                                     RankActivity* activity = nullptr,
                                                     double timeout = 0);

// One line: the NCCL version of the header at compile time, that of the loaded library, and whether
// they agree.
std::string nccl_version_report();

}  // namespace tpudist
