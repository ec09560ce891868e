#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace tpudist {

// Numbers pairs of non-negative integers 0, 1, ... by first occurrence; equal pairs have equal
// numbers. Not thread-safe.
class PairTable {
 public:
  // `hash_bits` below 64 keeps only that many bits of the hash, to make hashes collide in tests.
  // The table holds `expected` pairs without growing.
  explicit PairTable(int hash_bits = 64, std::size_t expected = 0)
      : mask_(hash_bits >= 64 ? ~0ull : (1ull << hash_bits) - 1),
        slots_(std::bit_ceil(std::max<std::size_t>(2 * expected, 64))) {}

  // Returns the number of the pair (a, b), and sets `fresh` to whether it is new.
  std::int32_t number(std::int32_t a, std::int32_t b, bool& fresh) {
    const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | static_cast<std::uint32_t>(b);
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(key) & mask;
    while (slots_[at].number >= 0) {
      if (slots_[at].key == key) {
        fresh = false;
        return slots_[at].number;
      }
      at = (at + 1) & mask;
    }
    fresh = true;
    slots_[at] = {key, size_};
    if (4 * static_cast<std::size_t>(++size_) > 3 * slots_.size()) grow();
    return size_ - 1;
  }

  // Removes all pairs and keeps the memory.
  void clear() {
    slots_.assign(slots_.size(), Slot{});
    size_ = 0;
  }

  // Number of pairs.
  std::int32_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t number = -1;
  };
  std::uint64_t hash(std::uint64_t key) const {
    key *= 0x9e3779b97f4a7c15ull;
    return (key ^ (key >> 32)) & mask_;
  }

  void grow() {
    std::vector<Slot> old(4 * slots_.size());
    old.swap(slots_);
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.number < 0) continue;
      std::size_t at = hash(slot.key) & mask;
      while (slots_[at].number >= 0) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::uint64_t mask_;
  std::vector<Slot> slots_;
  std::int32_t size_ = 0;
};

}  // namespace tpudist
