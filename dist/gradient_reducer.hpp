#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// Which rank computes which leaf: owner[member * leaves + leaf], -1 where the leaf is absent (a
// held-out slate, a tail slate). The same on all ranks: a pure function of the batch.
struct LeafOwners {
  int members = 0, leaves = 0;
  std::vector<int> owner;
  int of(int member, int leaf) const {
    return owner[static_cast<std::size_t>(member) * leaves + leaf];
  }
};

// Sums rows (one per member and leaf, `length` float32: gradient and whatever else is appended)
// over the leaves of each member.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  // Starts a step. Collective in meaning, without communication.
  virtual void begin(const LeafOwners& owners) = 0;

  // Adds this rank's row of one leaf. Thread-safe: units run side by side. Throws DistError when
  // the leaf is not this rank's or is added twice.
  virtual void add(int member, int leaf, std::span<const float> row) = 0;

  // Collective, one thread. Returns the sums [members, length], valid until the next `begin`; the
  // same bits on every rank. The row of a member without a leaf is zero. Throws DistError, on every
  // rank, when a leaf is missing on any.
  virtual std::span<const float> finalize() = 0;

  virtual std::int64_t bytes_sent() const = 0;  // by this rank since construction
};

}  // namespace tpudist
