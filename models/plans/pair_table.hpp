#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tpudist {

// Numbers pairs of non-negative integers 0, 1, ... by first occurrence; equal pairs have equal
// numbers. Made for first integers 0, 1, ... that mostly have one second integer: the first pair of
// each has a place of its own, and only further ones are hashed. Not thread-safe.
class PairTable {
 public:
  // `hash_bits` below 64 keeps only that many bits of the hash, to make hashes collide in tests.
  explicit PairTable(int hash_bits = 64)
      : mask_(hash_bits >= 64 ? ~0ull : (1ull << hash_bits) - 1), slots_(64) {}

  // Returns the number of the pair (a, b), and sets `fresh` to whether it is new.
  std::int32_t number(std::int32_t a, std::int32_t b, bool& fresh) {
    const auto at = static_cast<std::size_t>(a);
    if (at >= first_.size()) first_.resize(std::max(2 * first_.size(), at + 1));
    First& first = first_[at];
    fresh = first.number < 0;
    if (fresh) first = {b, size_++};
    return first.second == b ? first.number : number_further(a, b, fresh);
  }

  // Removes all pairs and keeps the memory.
  void clear() {
    std::ranges::fill(first_, First{});
    if (hashed_ > 0) std::ranges::fill(slots_, Slot{});
    hashed_ = size_ = 0;
  }

  // Number of pairs.
  std::int32_t size() const { return size_; }

 private:
  struct First {
    std::int32_t second = 0, number = -1;
  };
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t number = -1;
  };
  std::uint64_t hash(std::uint64_t key) const {
    key *= 0x9e3779b97f4a7c15ull;
    return (key ^ (key >> 32)) & mask_;
  }
  // The slot of a key, or the free one where it belongs.
  Slot& find(std::uint64_t key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(key) & mask;
    while (slots_[at].number >= 0 && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }

  std::int32_t number_further(std::int32_t a, std::int32_t b, bool& fresh) {
    const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | static_cast<std::uint32_t>(b);
    Slot& slot = find(key);
    fresh = slot.number < 0;
    if (!fresh) return slot.number;
    slot = {key, size_++};
    if (2 * ++hashed_ > slots_.size()) grow();
    return size_ - 1;
  }

  void grow() {
    std::vector<Slot> old(4 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number >= 0) find(slot.key) = slot;
    }
  }

  std::uint64_t mask_;
  std::vector<First> first_;  // of each first integer, one pair
  std::vector<Slot> slots_;
  std::size_t hashed_ = 0;
  std::int32_t size_ = 0;
};

}  // namespace tpudist
