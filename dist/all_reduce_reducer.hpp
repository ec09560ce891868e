#pragma once

#include <cstdint>
#include <memory>

#include "core/thread_pool.hpp"
#include "dist/communicator.hpp"
#include "dist/gradient_reducer.hpp"

namespace tpudist {

// Adds the leaves of this rank in leaf order and calls one all_reduce over the flat buffer. The
// fastest on NCCL, but its bits depend on the number of ranks. Rows and sums are host memory; with
// a device communicator the sums are copied through a buffer on the device. `pool` shares long
// additions.
std::unique_ptr<GradientReducer> make_all_reduce_reducer(Communicator& communicator,
                                                         std::int64_t length, ThreadPool& pool);

}  // namespace tpudist
