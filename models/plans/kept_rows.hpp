#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/plans/colour_table.hpp"

namespace tpudist {

// A hash of everything that the state of a row depends on: the node, the states that configurations
// give to the nodes around it, and their edges. Two rows of other content have equal hashes with a
// probability of 2^-128, so hashes stand for rows: among 2^32 rows that a store ever sees, there
// are two such rows with a probability of 2^-65.
struct ContentHash {
  std::uint64_t low = 0, high = 0;
  auto operator<=>(const ContentHash&) const = default;

  // The hash of an ordered pair.
  ContentHash then(const ContentHash& other) const {
    return {mix_hash(mix_hash(low + 0x9e3779b97f4a7c15ull) ^ other.low),
            mix_hash(mix_hash(high + 0xd1b54a32d192ed03ull) ^ other.high)};
  }
  // Adds a member to the hash of a multiset, which is the sum of its members' mixed hashes.
  void add(const ContentHash& member) {
    low += mix_hash(member.low + 0x8cb92ba72f3d8dd7ull);
    high += mix_hash(member.high + 0xaaaaaaaaaaaaaaabull);
  }
};

// The rows of one plan between two layers, as places of a KeptRows.
struct KeptLevel {
  std::vector<std::int32_t> computed;  // the rows that the plan computes, in order
  std::vector<std::int32_t> taken;     // the rows before the next layer, in order
};

// The states of rows, and the sums or maxima of the readout's cells, that slates of one network
// computed, for all of its members. Later slates take them instead of computing them again. Rows
// belong to a generation. When the younger of two generations has half of the bytes, it becomes the
// older one, and the older one is forgotten; a row of the older generation that is used again becomes
// a row of the younger one. The memory is thus bounded by the limit and the rows of one slate. Not
// thread-safe.
class KeptRows {
 public:
  // `channels` [depth + 2]: of the rows before each plan layer and after the last, and the floats of a
  // cell; 0: not kept. In this way a cell is a row at depth + 1.
  KeptRows(std::vector<std::int64_t> channels, int members, std::uint64_t most_bytes);

  // Call it before the plan of each slate. Places of earlier plans become invalid. If the last
  // plan was not computed (finish), forgets everything.
  void start();
  void finish() { started_ = false; }

  bool keeps(std::size_t depth) const { return channels_[depth] > 0; }
  // The place of a row. A new row has a place at once; its states come with exchange().
  std::int32_t place(std::size_t depth, const ContentHash& hash, bool& fresh);
  // Keeps the states of the rows that a member has computed, [level.computed], and copies those
  // before the next layer into `taken`. Rows are `stride` floats apart. Members may call it at the
  // same time.
  void exchange(std::size_t depth, int member, const KeptLevel& level, const float* computed,
                float* taken, std::int64_t stride);

 private:
  static constexpr std::int64_t kBlock = 256;  // rows
  struct Level {
    FlatIndex index;
    std::vector<ContentHash> hashes;  // [rows]
    // [blocks][members, kBlock, channels]: as they grow, no row is copied.
    std::vector<std::unique_ptr<float[]>> blocks;
    std::int32_t find(const ContentHash& hash) const {
      return index.find(hash.low, [&](std::int32_t row) { return hashes[row] == hash; });
    }
  };
  using Generation = std::vector<Level>;  // [depth + 2]
  std::uint64_t bytes_of(const Generation& generation) const;
  float* state(const Level& level, std::size_t depth, int member, std::int64_t row) const {
    const std::int64_t block = row / kBlock, place = member * kBlock + row % kBlock;
    return level.blocks[static_cast<std::size_t>(block)].get() + place * channels_[depth];
  }
  Generation none() const { return Generation(channels_.size()); }

  std::vector<std::int64_t> channels_;
  int members_;
  std::uint64_t most_bytes_;
  Generation young_, old_;
  bool started_ = false;
};

// How a call uses kept rows (build_fixed_plan).
struct KeptUse {
  KeptRows* rows = nullptr;
  std::vector<KeptLevel> levels;  // [depth + 2], empty where nothing is kept
};

}  // namespace tpudist
