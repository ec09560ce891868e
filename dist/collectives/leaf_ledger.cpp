#include "dist/collectives/leaf_ledger.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace tpudist {

LeafLedger::LeafLedger(int rank, int ranks, std::int64_t row_length)
    : rank_(rank), ranks_(ranks), row_length_(row_length) {
  if (row_length < 0) throw DistError(fmt::format("reduction of rows of length {}", row_length));
}

void LeafLedger::begin(const LeafOwners& owners) {
  begun_ = false;
  if (owners.members < 0 || owners.leaves < 0 ||
      owners.owner.size() != static_cast<std::size_t>(owners.members) * owners.leaves) {
    throw DistError(fmt::format("reduction: {} owners given for {} members x {} leaves",
                                owners.owner.size(), owners.members, owners.leaves));
  }
  for (std::size_t i = 0; i < owners.owner.size(); ++i) {
    if (owners.owner[i] >= -1 && owners.owner[i] < ranks_) continue;
    throw DistError(fmt::format("reduction: leaf {} of member {} belongs to rank {} of {}",
                                i % owners.leaves, i / owners.leaves, owners.owner[i], ranks_));
  }
  owners_ = owners;
  const MutexLock lock(mutex_);
  added_.assign(owners.owner.size(), 0);
  begun_ = true;
}

void LeafLedger::claim(int member, int leaf, std::size_t row_length) {
  const auto refuse = [&](const std::string& why) {
    throw DistError(fmt::format("reduction: leaf {} of member {} {}", leaf, member, why));
  };
  if (!begun_) refuse("was added outside of a step");
  if (member < 0 || member >= owners_.members || leaf < 0 || leaf >= owners_.leaves) {
    refuse("does not exist");
  }
  if (row_length != static_cast<std::size_t>(row_length_)) {
    refuse(fmt::format("has {} values instead of {}", row_length, row_length_));
  }
  if (owners_.of(member, leaf) < 0) refuse("is absent in this step");
  if (owners_.of(member, leaf) != rank_) {
    refuse(fmt::format("belongs to rank {}, not to {}", owners_.of(member, leaf), rank_));
  }
  const MutexLock lock(mutex_);
  char& added = added_[static_cast<std::size_t>(member) * owners_.leaves + leaf];
  if (added) refuse("was added twice");
  added = 1;
}

void LeafLedger::end() {
  if (!begun_) throw DistError("a reduction was finished that had not begun");
  begun_ = false;
}

void LeafLedger::end_on_all_ranks(Communicator& world) {
  end();
  Hasher hasher;
  hasher.update(row_length_);
  hasher.update(owners_.members);
  hasher.update(std::span<const int>(owners_.owner));
  const auto hash = static_cast<std::int64_t>(hasher.digest());
  const std::string missing = this->missing();
  std::array<std::int64_t, 3> lowest = {missing.empty(), hash, ~hash};
  world.all_reduce(std::span<std::int64_t>(lowest), ReduceOp::min);
  if (lowest[1] != ~lowest[2]) {
    throw DistError("the ranks disagree on who owns which leaf, or on the length of a row");
  }
  if (lowest[0]) return;
  run_on_all_ranks(world, [&] {
    if (!missing.empty()) throw DistError(missing);
  });
}

std::string LeafLedger::missing() const {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < added_.size(); ++i) {
    if (owners_.owner[i] != rank_ || added_[i]) continue;
    return fmt::format("reduction: leaf {} of member {} was not added by its rank {}",
                       i % owners_.leaves, i / owners_.leaves, rank_);
  }
  return "";
}

}  // namespace tpudist
