#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/flat_index.hpp"

namespace tpudist {

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

}  // namespace tpudist
