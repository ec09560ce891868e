#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/thread_pool.hpp"
#include "dist/collectives/communicator.hpp"

namespace tpudist {

// The rank that computes each leaf: owner[member * leaves + leaf], -1 if the leaf is absent (a
// held-out slate, a tail slate). A pure function of the batch, so equal on all ranks.
struct LeafOwners {
  int members = 0, leaves = 0;
  std::vector<int> owner;
  int of(int member, int leaf) const {
    return owner[static_cast<std::size_t>(member) * leaves + leaf];
  }
};

// Sums rows over the leaves of each member, in host memory (device_reducer.hpp: in device memory).
// There is one row per member and leaf: `length` float32, the gradient and any appended values.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  // Starts a step. All ranks must pass the same owners; nothing is sent.
  virtual void begin(const LeafOwners& owners) = 0;

  // Adds this rank's row of one leaf. Thread-safe: units run side by side. Throws DistError when
  // the leaf belongs to another rank or is added twice.
  virtual void add(int member, int leaf, std::span<const float> row) = 0;

  // Collective, one thread. Returns the sums [members, length], with the same bits on every rank,
  // valid until the next `begin`. A member without leaves gets zeros. Throws DistError on every
  // rank if any rank misses a leaf.
  virtual std::span<const float> finalize() = 0;

  virtual std::int64_t bytes_sent() const = 0;  // by this rank since construction
};

// Sums in one fixed binary tree over leaf numbers, padded to a power of two. Absent leaves are
// skipped, never added as 0.0. So the bits are the same for any number of ranks and threads. A rank
// merges two nodes as soon as it has both. The ranks exchange slices of their largest sub-trees
// (all_to_all), finish the tree on their own slice, and all_gather the result. `pool` shares long
// additions. Host memory.
std::unique_ptr<GradientReducer> make_tree_reducer(Communicator& communicator, std::int64_t length,
                                                   ThreadPool& pool);

}  // namespace tpudist
