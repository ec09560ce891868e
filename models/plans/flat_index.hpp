#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tpudist {

// Mixes a word into a hash (the finaliser of MurmurHash3 by A. Appleby).
inline std::uint64_t mix_hash(std::uint64_t hash) {
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdull;
  hash ^= hash >> 33;
  hash *= 0xc4ceb9fe1a85ec53ull;
  return hash ^ (hash >> 33);
}

// Finds items by their hash, with open addressing. The caller stores the items and numbers them.
// The hash only finds candidates; the caller's `equal(item)` decides. Not thread-safe.
class FlatIndex {
 public:
  // Returns the item that was inserted with this hash and for which `equal` is true, or -1.
  template <typename Equal>
  std::int32_t find(std::uint64_t hash, Equal&& equal) const {
    if (slots_.empty()) return -1;
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.item < 0) return -1;
      if (slot.hash == static_cast<std::uint32_t>(hash >> 32) && equal(slot.item)) return slot.item;
    }
  }

  // Adds an item (>= 0). Does not check whether it exists already.
  void insert(std::uint64_t hash, std::int32_t item) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    place(static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32), item);
    ++count_;
  }

  // Removes all items and keeps the memory.
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    count_ = 0;
  }

 private:
  struct Slot {
    std::uint32_t low = 0, hash = 0;
    std::int32_t item = -1;
  };

  void place(std::uint32_t low, std::uint32_t high, std::int32_t item) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = low & mask;
    while (slots_[at].item >= 0) at = (at + 1) & mask;
    slots_[at] = {low, high, item};
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.item >= 0) place(slot.low, slot.hash, slot.item);
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace tpudist
