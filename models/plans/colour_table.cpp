#include "models/plans/colour_table.hpp"

#include <algorithm>

namespace tpudist {

std::int32_t ColourTable::colour(std::span<const std::uint32_t> key, bool& fresh) {
  // One multiplication per word; the finaliser distributes the low bits.
  std::uint64_t hash = key.size();
  for (const std::uint32_t word : key) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  hash = mix_hash(hash) & mask_;
  const std::int32_t known = index_.find(
      hash, [&](std::int32_t colour) { return std::ranges::equal(this->key(colour), key); });
  fresh = known < 0;
  if (!fresh) return known;
  const std::int32_t colour = size();
  index_.insert(hash, colour);
  words_.insert(words_.end(), key.begin(), key.end());
  begin_.push_back(static_cast<std::int64_t>(words_.size()));
  return colour;
}

}  // namespace tpudist
