#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/flat_index.hpp"

namespace tpudist {

// Gives keys, which are sequences of 32-bit words, colours: equal keys get equal colours, and
// colours are numbered by the first occurrence of their key. A hash only finds candidates; keys are
// compared in full. Not thread-safe.
class ColourTable {
 public:
  // `hash_bits` below 64 keeps only so many bits of the hash, so that tests make hashes collide.
  explicit ColourTable(int hash_bits = 64)
      : mask_(hash_bits >= 64 ? ~0ull : (1ull << hash_bits) - 1) {}

  // Returns the colour of a key, and sets `fresh` to whether the key has not come before.
  std::int32_t colour(std::span<const std::uint32_t> key, bool& fresh);

  // How many colours there are.
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
