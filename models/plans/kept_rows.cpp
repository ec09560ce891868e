#include "models/plans/kept_rows.hpp"

#include <algorithm>
#include <utility>

#include "models/plans/csr.hpp"

namespace tpudist {

KeptRows::KeptRows(std::vector<std::int64_t> channels, int members, std::uint64_t most_bytes)
    : channels_(std::move(channels)),
      members_(members),
      most_bytes_(most_bytes),
      young_(none()),
      old_(none()) {}

std::uint64_t KeptRows::bytes_of(const Generation& generation) const {
  constexpr std::uint64_t kOfIndex = 36;  // of a row: a slot for every third, 12 bytes each
  std::uint64_t bytes = 0;
  for (std::size_t depth = 0; depth < channels_.size(); ++depth) {
    const auto states = static_cast<std::uint64_t>(channels_[depth] * members_) * sizeof(float);
    bytes += generation[depth].hashes.size() * (sizeof(ContentHash) + kOfIndex + states);
  }
  return bytes;
}

void KeptRows::start() {
  // The memory of what is forgotten is used again: fresh pages take longer than the arithmetic.
  const auto forget = [](Generation& generation) {
    for (Level& level : generation) {
      level.index.clear();
      level.hashes.clear();
    }
  };
  if (std::exchange(started_, true)) {
    forget(young_);
    forget(old_);
  } else if (2 * bytes_of(young_) > most_bytes_) {
    std::swap(old_, young_);
    forget(young_);
    if (bytes_of(old_) > most_bytes_) forget(old_);
  }
}

std::int32_t KeptRows::place(std::size_t depth, const ContentHash& hash, bool& fresh) {
  Level& level = young_[depth];
  const std::int32_t known = level.find(hash);
  fresh = false;
  if (known >= 0) return known;
  const auto row = to_index32(std::ssize(level.hashes));
  level.index.insert(hash.low, row);
  level.hashes.push_back(hash);
  const std::int64_t channels = channels_[depth];
  if (std::ssize(level.blocks) == row / kBlock)
    level.blocks.push_back(std::make_unique_for_overwrite<float[]>(
        static_cast<std::size_t>(members_ * kBlock * channels)));
  const std::int32_t old = old_[depth].find(hash);
  fresh = old < 0;
  for (int m = 0; !fresh && m < members_; ++m)
    std::copy_n(state(old_[depth], depth, m, old), channels, state(level, depth, m, row));
  return row;
}

void KeptRows::exchange(std::size_t depth, int member, const KeptLevel& level,
                        const float* computed, float* taken, std::int64_t stride) {
  if (level.taken.empty()) return;
  const std::int64_t channels = channels_[depth];
  for (const std::int32_t row : level.computed) {
    std::copy_n(computed, channels, state(young_[depth], depth, member, row));
    computed += stride;
  }
  for (const std::int32_t row : level.taken) {
    std::copy_n(state(young_[depth], depth, member, row), channels, taken);
    taken += stride;
  }
}

}  // namespace tpudist
