#include "models/plans/kept_rows.hpp"

#include <numeric>
#include <utility>

#include "models/plans/csr.hpp"

namespace tpudist {

RowContents::RowContents(const RefinedGraph& graph)
    : state_(graph.nodes()),
      rows_(graph.shape().layers.size() + 1,
            std::vector<ContentHash>(state_.size(), ContentHash::no_member())),
      state_row_(state_.size(), -1),
      places_(rows_.size(), state_row_),
      cell_of_(state_row_),
      touch_(state_.size()) {
  for (const LayerShape& layer : graph.shape().layers)
    around_.emplace_back(layer.edge_kinds.size(), state_);
  const auto depth = static_cast<int>(around_.size());
  for (const std::int32_t node : graph.reached(depth)) {
    if (cells_.empty() || cells_.back().size() == kCellNodes) cells_.emplace_back();
    cells_.back().push_back(node);
    cell_of_[node] = static_cast<std::int32_t>(cells_.size()) - 1;
  }
  cells_.emplace_back();
  for (std::int32_t node = 0; node < graph.nodes(); ++node) {
    if (cell_of_[node] < 0) cells_.back().push_back(node);
  }
  places_.emplace_back(cells_.size(), -1);
  std::vector<std::int32_t> all(state_.size());
  std::iota(all.begin(), all.end(), 0);
  update(graph, all);
}

void RowContents::change_to(const RefinedGraph& graph, std::span<const std::int32_t> states,
                            std::span<const ContentHash> hashes) {
  changed_.clear();
  for (std::size_t j = 0; j < states.size(); ++j) {
    const std::int32_t node = graph.config_nodes()[j];
    state_row_[node] = states[j];
    if (state_[node] == hashes[states[j]]) continue;
    state_[node] = hashes[states[j]];
    changed_.push_back(node);
  }
  update(graph, changed_);
}

ContentHash RowContents::content(const RefinedGraph& graph, std::size_t depth,
                                 std::int32_t node) const {
  const PlanShape& shape = graph.shape();
  if (depth == 0)
    return ContentHash::of_number(graph.node_class()[node])
        .then(shape.early_join ? state_[node] : ContentHash());
  const auto& around = around_[depth - 1];
  return rows_[depth - 1][node].after_layer(
      shape.layers[depth - 1].joins_states ? &state_[node] : nullptr, around.size(),
      [&](std::size_t set) { return around[set][node]; });
}

std::uint64_t RowContents::bytes(const PlanShape& shape, std::int64_t nodes) {
  std::uint64_t hashes = 2, numbers = 9 + shape.layers.size();  // of a node
  for (const LayerShape& layer : shape.layers) hashes += 1 + layer.edge_kinds.size();
  return static_cast<std::uint64_t>(nodes) *
         (hashes * sizeof(ContentHash) + numbers * sizeof(std::int32_t));
}

// Layer by layer: the rows of these nodes, and those with a row before the layer that changed.
void RowContents::update(const RefinedGraph& graph, std::span<const std::int32_t> nodes) {
  touched_.assign(nodes.begin(), nodes.end());
  const auto touch = [&](std::int32_t node) {
    if (std::exchange(touch_[node], time_) != time_) next_.push_back(node);
  };
  for (std::size_t depth = 0;; ++depth) {
    ++time_;
    next_.clear();
    for (const std::int32_t node : touched_) {
      const ContentHash hash = content(graph, depth, node);
      ContentHash& known = rows_[depth][node];
      if (hash == known) continue;
      const ContentHash change = hash.as_member() - known.as_member();
      known = hash;
      places_[depth][node] = -1;
      if (depth == around_.size()) {
        if (cell_of_[node] >= 0) places_[depth + 1][cell_of_[node]] = -1;
        continue;
      }
      touch(node);
      for (std::size_t set = 0; set < around_[depth].size(); ++set) {
        const EdgeKind kind = reversed(graph.shape().layers[depth].edge_kinds[set]);
        for (const std::int32_t other : graph.adjacency(kind).of(node)) {
          around_[depth][set][other] += change;
          touch(other);
        }
      }
    }
    if (depth == around_.size()) return;
    for (const std::int32_t node : nodes) touch(node);
    touched_.swap(next_);
  }
}

KeptRows::KeptRows(std::vector<std::int64_t> channels, int members, std::uint64_t most_bytes)
    : channels_(std::move(channels)),
      members_(members),
      most_bytes_(most_bytes),
      levels_(channels_.size()) {}

std::uint64_t KeptRows::bytes(const RefinedGraph& graph) const {
  constexpr std::uint64_t kOfIndex = 40;  // of a row: its last index, a slot for every third
  std::uint64_t bytes = RowContents::bytes(graph.shape(), graph.nodes());
  for (std::size_t depth = 0; depth < channels_.size(); ++depth) {
    const auto states = static_cast<std::uint64_t>(channels_[depth] * members_) * sizeof(float);
    bytes += static_cast<std::uint64_t>(levels_[depth].places.size()) *
             (sizeof(ContentHash) + kOfIndex + states);
  }
  return bytes;
}

void KeptRows::start(const RefinedGraph& graph) {
  if (!contents_) contents_.emplace(graph);
  const bool all = std::exchange(started_, true) || bytes(graph) > most_bytes_;
  for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
    Level& level = levels_[depth];
    if (keeps(depth)) {
      if (!all) continue;
      level = {};
    }
    // What is not kept uses its memory again: fresh pages take longer than the arithmetic.
    level.places.clear();
    level.taken_index.clear();
    contents_->forget_places(depth);
  }
}

std::int32_t KeptRows::place(std::size_t depth, const ContentHash& hash, bool& fresh) {
  Level& level = levels_[depth];
  const std::int32_t row = level.places.number(hash, fresh);
  if (!fresh) return row;
  level.taken_index.push_back(0);
  if (keeps(depth) && std::ssize(level.blocks) == row / kBlock)
    level.blocks.push_back(std::make_unique_for_overwrite<float[]>(
        static_cast<std::size_t>(members_ * kBlock * channels_[depth])));
  return row;
}

std::int32_t KeptRows::take(std::size_t depth, std::int32_t place, KeptLevel& level) {
  std::int32_t& index = levels_[depth].taken_index[place];
  if (index >= std::ssize(level.taken) || level.taken[index] != place) {
    index = to_index32(std::ssize(level.taken));
    level.taken.push_back(place);
  }
  return index;
}

void KeptRows::exchange(std::size_t depth, int member, const KeptLevel& level,
                        const float* computed, float* taken, std::int64_t stride) {
  if (level.taken.empty()) return;
  const std::int64_t channels = channels_[depth];
  for (const std::int32_t row : level.computed) {
    std::copy_n(computed, channels, state(depth, member, row));
    computed += stride;
  }
  for (const std::int32_t row : level.taken) {
    std::copy_n(state(depth, member, row), channels, taken);
    taken += stride;
  }
}

}  // namespace tpudist
