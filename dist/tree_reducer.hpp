#pragma once

#include <cstdint>
#include <memory>

#include "core/thread_pool.hpp"
#include "dist/communicator.hpp"
#include "dist/gradient_reducer.hpp"

namespace tpudist {

// Sums in one fixed binary tree over leaf numbers, padded to a power of two. Absent leaves are
// skipped, never added as 0.0. So the bits are the same for any number of ranks and threads. A rank
// merges two nodes as soon as it has both. Ranks exchange their largest sub-trees in slices
// (all_to_all), finish the tree on their slice, and all_gather the result. `pool` shares long
// additions. Host memory.
std::unique_ptr<GradientReducer> make_tree_reducer(Communicator& communicator, std::int64_t length,
                                                   ThreadPool& pool);

}  // namespace tpudist
