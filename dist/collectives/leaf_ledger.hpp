#pragma once

#include <vector>

#include "core/mutex.hpp"
#include "dist/collectives/gradient_reducer.hpp"

namespace tpudist {

// Tracks which leaves one rank still has to add in a step. `claim` is thread-safe.
class LeafLedger {
 public:
  LeafLedger(int rank, int ranks, std::int64_t row_length);

  // Throws DistError when the owners do not fill [members, leaves] or an owner is not a rank.
  void begin(const LeafOwners& owners);

  // Marks a leaf as added. Throws DistError if no step has begun, if the leaf does not exist, is
  // absent, belongs to another rank or was added before, or if the row has another length.
  void claim(int member, int leaf, std::size_t row_length);

  // Ends the step. Throws DistError if none has begun.
  void end();
  // Ends the step on all ranks by one small all_reduce, so that no rank waits for one that misses a
  // leaf. Throws DistError on all ranks if one does, or if their owners or lengths differ.
  void end_on_all_ranks(Communicator& world);

  // Describes this rank's first missing leaf; "" when none is missing.
  std::string missing() const;

  const LeafOwners& owners() const { return owners_; }

 private:
  const int rank_, ranks_;
  const std::int64_t row_length_;
  LeafOwners owners_;
  bool begun_ = false;
  mutable Mutex mutex_;
  std::vector<char> added_ TPUDIST_GUARDED_BY(mutex_);  // [members, leaves]
};

}  // namespace tpudist
