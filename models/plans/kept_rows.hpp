#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/plans/colour_table.hpp"
#include "models/plans/refined_graph.hpp"

namespace tpudist {

// Nodes of a cell of a fixed plan's readout.
inline constexpr std::size_t kCellNodes = 16;

// A hash of everything that the state of a row depends on: the node, the states that configurations
// give to the nodes around it, and their edges. Two rows of other content have equal hashes with a
// probability of 2^-128, so hashes stand for rows: among 2^32 rows that a store ever sees, there
// are two such rows with a probability of 2^-65.
struct ContentHash {
  std::uint64_t low = 0, high = 0;
  auto operator<=>(const ContentHash&) const = default;

  static ContentHash of_number(std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    return {mix_hash(bits + 0x2545f4914f6cdd1dull), mix_hash(bits + 0x9fb21c651e98df25ull)};
  }
  // The hash of an ordered pair.
  ContentHash then(const ContentHash& other) const {
    return {mix_hash(mix_hash(low + 0x9e3779b97f4a7c15ull) ^ other.low),
            mix_hash(mix_hash(high + 0xd1b54a32d192ed03ull) ^ other.high)};
  }
  // The hash of a row after a layer, if *this is that of the same node's row before it. `state`: of
  // its state; null if the layer joins none. around(set): of its neighbourhood in an edge set.
  template <typename Around>
  ContentHash after_layer(const ContentHash* state, std::size_t sets, const Around& around) const {
    ContentHash hash = then({1, 1});
    if (state) hash = hash.then(*state);
    for (std::size_t set = 0; set < sets; ++set) hash = hash.then(around(set));
    return hash;
  }
  // The hash of a multiset is the sum of those of its members.
  ContentHash as_member() const { return {mix_hash(low + kLow), mix_hash(high + kHigh)}; }
  // The one that adds nothing to a multiset.
  static ContentHash no_member() { return {-kLow, -kHigh}; }
  ContentHash& operator+=(const ContentHash& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
  ContentHash operator-(const ContentHash& other) const {
    return {low - other.low, high - other.high};
  }

  static constexpr std::uint64_t kLow = 0x8cb92ba72f3d8dd7ull, kHigh = 0xaaaaaaaaaaaaaaabull;
};

// Numbers contents by first occurrence. Not thread-safe.
class ContentNumbers {
 public:
  // Sets `fresh` to whether the content is new.
  std::int32_t number(const ContentHash& hash, bool& fresh) {
    const std::int32_t known =
        index_.find(hash.low, [&](std::int32_t i) { return hashes_[i] == hash; });
    fresh = known < 0;
    if (!fresh) return known;
    index_.insert(hash.low, to_index32(size()));
    hashes_.push_back(hash);
    return to_index32(size() - 1);
  }
  std::int64_t size() const { return std::ssize(hashes_); }
  // Keeps the memory.
  void clear() {
    index_.clear();
    hashes_.clear();
  }

 private:
  FlatIndex index_;
  std::vector<ContentHash> hashes_;
};

// The contents of all rows of one configuration of a graph, and their places in a KeptRows. Another
// configuration costs as much as the rows that it changes. For layers along edges. All calls must
// have the same graph. Not thread-safe.
class RowContents {
 public:
  // Without states.
  explicit RowContents(const RefinedGraph& graph);
  // `states` [nc]: rows of `hashes`.
  void change_to(const RefinedGraph& graph, std::span<const std::int32_t> states,
                 std::span<const ContentHash> hashes);

  const ContentHash& row(std::size_t depth, std::int32_t node) const { return rows_[depth][node]; }
  // The rows before a layer in the neighbourhood of a node.
  const ContentHash& around(std::size_t layer, std::size_t set, std::int32_t node) const {
    return around_[layer][set][node];
  }
  // The row of a node's state in `states`; -1: none.
  std::int32_t state_row(std::int32_t node) const { return state_row_[node]; }
  // The nodes of each cell of the readout; the last cell has the nodes that no configuration
  // reaches.
  const std::vector<std::vector<std::int32_t>>& cells() const { return cells_; }
  // The place of a node's row, or at depth + 1 of a cell; -1: not known.
  std::int32_t& place(std::size_t depth, std::int32_t number) { return places_[depth][number]; }
  void forget_places(std::size_t depth) { std::ranges::fill(places_[depth], -1); }
  // The memory that the contents of a graph take.
  static std::uint64_t bytes(const PlanShape& shape, std::int64_t nodes);

 private:
  ContentHash content(const RefinedGraph& graph, std::size_t depth, std::int32_t node) const;
  void update(const RefinedGraph& graph, std::span<const std::int32_t> nodes);

  std::vector<ContentHash> state_;                             // [n]
  std::vector<std::vector<ContentHash>> rows_;                 // [depth + 1][n]
  std::vector<std::vector<std::vector<ContentHash>>> around_;  // [depth][edge sets][n]
  std::vector<std::int32_t> state_row_;                        // [n]
  std::vector<std::vector<std::int32_t>> cells_, places_;
  std::vector<std::int32_t> cell_of_, changed_, touched_, next_;
  std::vector<std::int64_t> touch_;  // [n] the last time that a node was touched
  std::int64_t time_ = 0;
};

// The rows of one plan between two layers, as places of a KeptRows.
struct KeptLevel {
  std::vector<std::int32_t> computed;  // the rows that the plan computes, in order
  std::vector<std::int32_t> taken;     // the rows before the next layer, in order
};

// The states of rows, and the sums or maxima of the readout's cells, that slates of one graph
// computed, for all members of a network. Later slates take them instead of computing them again. A
// slate that finds more than the limit begins with nothing, so the memory is at most the limit, the
// rows of one slate, and what is free in the last block of each depth. Not thread-safe.
class KeptRows {
 public:
  // `channels` [depth + 2]: of the rows before each plan layer and after the last, and the floats of
  // a cell; 0: not kept. In this way a cell is a row at depth + 1.
  KeptRows(std::vector<std::int64_t> channels, int members, std::uint64_t most_bytes);

  // Call it before the plan of each slate. Places of earlier plans become invalid. If the last plan
  // was not computed (finish), forgets everything. What is not kept belongs to one slate.
  void start(const RefinedGraph& graph);
  void finish() { started_ = false; }
  RowContents& contents() { return *contents_; }

  std::uint64_t bytes(const RefinedGraph& graph) const;  // of memory
  bool keeps(std::size_t depth) const { return channels_[depth] > 0; }
  // The place of a row. A new row has a place at once; its states come with exchange().
  std::int32_t place(std::size_t depth, const ContentHash& hash, bool& fresh);
  // The index of a place in `level.taken`, to which it appends the place if it is missing.
  std::int32_t take(std::size_t depth, std::int32_t place, KeptLevel& level);
  // Keeps the states of the rows that a member has computed, [level.computed], and copies those
  // before the next layer into `taken`. Rows are `stride` floats apart. Members may call it at the
  // same time.
  void exchange(std::size_t depth, int member, const KeptLevel& level, const float* computed,
                float* taken, std::int64_t stride);

 private:
  static constexpr std::int64_t kBlock = 256;  // rows
  struct Level {
    ContentNumbers places;
    std::vector<std::int32_t> taken_index;  // [rows] in the last slate that took the row
    // [blocks][members, kBlock, channels]: as they grow, no row is copied.
    std::vector<std::unique_ptr<float[]>> blocks;
  };
  float* state(std::size_t depth, int member, std::int64_t row) const {
    const std::int64_t block = row / kBlock, place = member * kBlock + row % kBlock;
    return levels_[depth].blocks[static_cast<std::size_t>(block)].get() + place * channels_[depth];
  }

  std::vector<std::int64_t> channels_;
  int members_;
  std::uint64_t most_bytes_;
  std::vector<Level> levels_;  // [depth + 2]
  std::optional<RowContents> contents_;
  bool started_ = false;
};

// How a call uses kept rows (build_kept_plan).
struct KeptUse {
  KeptRows* rows = nullptr;
  std::vector<KeptLevel> levels;  // [depth + 2], empty where nothing is kept
};

}  // namespace tpudist
