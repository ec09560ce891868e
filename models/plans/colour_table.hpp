#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
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

// Numbers pairs of non-negative integers by first occurrence, from 0; equal pairs get equal
// numbers. The first pair of each first integer is stored directly, and only further pairs are
// hashed: fast if most first integers are small and occur with one second integer. Not thread-safe.
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
  std::vector<First> first_;  // the first pair of each first integer
  std::vector<Slot> slots_;
  std::size_t hashed_ = 0;
  std::int32_t size_ = 0;
};

// Assigns colours to keys, which are sequences of 32-bit words. Equal keys get equal colours;
// colours are numbered by first occurrence. A hash only finds candidates; keys are compared in
// full. Not thread-safe.
class ColourTable {
 public:
  // `hash_bits` below 64 keeps only that many bits of the hash, to make hashes collide in tests.
  explicit ColourTable(int hash_bits = 64)
      : mask_(hash_bits >= 64 ? ~0ull : (1ull << hash_bits) - 1) {}

  // Returns the colour of a key, and sets `fresh` to whether the key is new.
  std::int32_t colour(std::span<const std::uint32_t> key, bool& fresh);

  // Removes all colours and keeps the memory.
  void clear() {
    index_.clear();
    words_.clear();
    begin_.resize(1);
  }

  // Number of colours.
  std::int32_t size() const { return static_cast<std::int32_t>(begin_.size()) - 1; }
  // The key of a colour, valid until the next call of `colour`.
  std::span<const std::uint32_t> key(std::int32_t colour) const {
    return std::span(words_).subspan(begin_[colour], begin_[colour + 1] - begin_[colour]);
  }

 private:
  std::uint64_t mask_;
  FlatIndex index_;
  std::vector<std::uint32_t> words_;
  std::vector<std::int64_t> begin_{0};
};

// Numbers partitions of K configurations into classes. Equal partitions get equal numbers. The
// common refinement of two partitions is computed once and then looked up. The nodes of a graph
// have few different partitions, so the cost depends on the number of classes and hardly on K.
// Number 0 is the partition with one class. Not thread-safe.
class ConfigPartitions {
 public:
  explicit ConfigPartitions(std::int64_t configs);

  // Returns the partition that puts configurations with equal `labels` [K] into one class.
  std::int32_t of_labels(std::span<const std::int32_t> labels);

  // Returns the common refinement: configurations are in one class if they are in both partitions.
  std::int32_t refine(std::int32_t a, std::int32_t b) {
    if (a == b || b == 0) return a;
    return a == 0 ? b : refine_further(a, b);
  }

  std::int32_t classes(std::int32_t partition) const {
    return static_cast<std::int32_t>(first_begin_[partition + 1] - first_begin_[partition]);
  }
  // [K] class of each configuration, numbered by first occurrence.
  std::span<const std::int32_t> class_of_config(std::int32_t partition) const {
    const auto* const all = reinterpret_cast<const std::int32_t*>(contents_.key(0).data());
    return {all + partition * configs_, static_cast<std::size_t>(configs_)};
  }
  // [classes] first configuration of each class.
  std::span<const std::int32_t> first_config(std::int32_t partition) const {
    return {first_config_.data() + first_begin_[partition],
            static_cast<std::size_t>(classes(partition))};
  }

 private:
  std::int32_t intern(std::span<const std::int32_t> classes);
  std::int32_t refine_further(std::int32_t a, std::int32_t b);
  void number_pairs(std::int32_t a, std::int32_t b);

  std::int64_t configs_;
  ColourTable contents_;                      // [partitions] class of each configuration
  std::vector<std::int32_t> first_config_;    // first configurations, partition after partition
  std::vector<std::int64_t> first_begin_{0};  // [partitions + 1]
  PairTable by_pair_, pairs_;
  std::vector<std::int32_t> pair_result_;  // [by_pair_.size()]
  std::vector<std::int32_t> scratch_, table_, label_of_class_;
};

}  // namespace tpudist
