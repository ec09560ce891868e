#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/flat_index.hpp"

namespace tpudist {

// Gives equal keys (sequences of 32-bit words) equal colours, numbered by first occurrence. A hash
// finds the bucket, full keys are compared. Not thread-safe.
class ColourTable {
 public:
  // `hash_bits` < 64 weakens the hash, for tests of the full comparison.
  explicit ColourTable(int hash_bits = 64)
      : mask_(hash_bits >= 64 ? ~0ull : (1ull << hash_bits) - 1) {}

  // Colour of a key; `fresh` tells whether it is new.
  std::int32_t colour(std::span<const std::uint32_t> key, bool& fresh);

  std::int32_t size() const { return static_cast<std::int32_t>(begin_.size()) - 1; }
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
