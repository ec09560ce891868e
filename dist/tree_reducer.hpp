#pragma once

#include <cstdint>
#include <memory>

#include "core/thread_pool.hpp"
#include "dist/communicator.hpp"
#include "dist/gradient_reducer.hpp"

namespace tpudist {

// One fixed binary tree over leaf numbers, padded to a power of two with absent leaves (passed
// through, never + 0.0): the same bits for any number of ranks and threads. A rank merges what it
// holds as soon as both children exist; ranks exchange the maximal sub-trees in slices
// (all-to-all), finish the tree on their slice, and all-gather the result. `pool` shares long
// additions. Host memory.
std::unique_ptr<GradientReducer> make_tree_reducer(Communicator& communicator, std::int64_t length,
                                                   ThreadPool& pool);

}  // namespace tpudist
