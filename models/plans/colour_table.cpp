#include "models/plans/colour_table.hpp"

#include <algorithm>

namespace tpudist {

std::int32_t ColourTable::colour(std::span<const std::uint32_t> key, bool& fresh) {
  // One multiplication for two words; the finaliser distributes the low bits.
  std::uint64_t hash = key.size();
  const auto add = [&](std::uint64_t words) {
    hash = (hash ^ words) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  };
  std::size_t at = 0;
  for (; at + 1 < key.size(); at += 2) add(key[at] | static_cast<std::uint64_t>(key[at + 1]) << 32);
  if (at < key.size()) add(key[at]);
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
