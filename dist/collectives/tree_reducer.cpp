#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "dist/collectives/gradient_reducer.hpp"
#include "dist/collectives/leaf_ledger.hpp"
#include "dist/collectives/reduction_tree.hpp"
#include "dist/collectives/row_math.hpp"

namespace tpudist {
namespace {

// See make_tree_reducer. Ranks exchange slices: rank r of R finishes the tree on elements
// [r L / R, (r + 1) L / R) (whole multiples of 16) of every row.
class TreeReducer final : public GradientReducer {
 public:
  // Throws DistError unless the communicator works on host memory and length >= 0.
  TreeReducer(Communicator& communicator, std::int64_t length, ThreadPool& pool);

  void begin(const LeafOwners& owners) override;
  void add(int member, int leaf, std::span<const float> row) override;
  std::span<const float> finalize() override;
  std::int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  float* swap_with_sibling(int node, float* value);
  void exchange();
  void merge_slices();
  void gather();
  std::vector<std::int64_t> slice_lengths() const;
  float* result_row(int member) { return result_.data() + member * length_; }

  Communicator& communicator_;
  const std::int64_t length_;
  const std::vector<std::int64_t> slice_begin_;  // [ranks + 1]
  ThreadPool& pool_;

  LeafLedger ledger_;
  ReductionTree tree_;
  Mutex mutex_;
  // [nodes], this rank's finished sub-trees, else null.
  std::vector<float*> value_ TPUDIST_GUARDED_BY(mutex_);

  RowStore rows_;
  AlignedFloats result_;       // [members, length]; a member's first leaf starts here
  AlignedFloats received_;     // slices of the other ranks' sub-trees
  std::vector<float*> slice_;  // [nodes], this rank's slice of each held sub-tree, then of each sum
  std::int64_t bytes_sent_ = 0;
};

TreeReducer::TreeReducer(Communicator& communicator, std::int64_t length, ThreadPool& pool)
    : communicator_(communicator),
      length_(length),
      slice_begin_(slice_begins(length, communicator.size())),
      pool_(pool),
      ledger_(communicator.rank(), communicator.size(), length),
      rows_(length) {
  if (communicator.memory() != MemoryKind::host) {
    throw DistError(fmt::format("tree reduction needs a communicator over host memory, not '{}'",
                                communicator.name()));
  }
}

void TreeReducer::begin(const LeafOwners& owners) {
  ledger_.begin(owners);
  tree_ = make_reduction_tree(owners, communicator_.size());
  slice_.assign(tree_.nodes.size(), nullptr);
  rows_.take_all_back();
  grow(result_, owners.members * length_);
  const MutexLock lock(mutex_);
  value_.assign(tree_.nodes.size(), nullptr);
}

// Takes the sibling's value if it is ready and this rank merges the parent. Otherwise leaves
// `value`, unless null, at the node for the sibling.
float* TreeReducer::swap_with_sibling(int node, float* value) {
  const int parent = tree_.nodes[node].parent;
  const MutexLock lock(mutex_);
  if (parent != ReductionTree::none && tree_.nodes[parent].owner == communicator_.rank()) {
    const ReductionTree::Node& above = tree_.nodes[parent];
    float*& sibling = value_[above.left == node ? above.right : above.left];
    if (sibling) return std::exchange(sibling, nullptr);
  }
  if (value) value_[node] = value;
  return nullptr;
}

// Climbs from the leaf: the thread that reaches a node second merges it and goes on with the
// parent. The caller's row is copied only if it has to wait. A merge is stored in the left child's
// memory, so a member's sum grows in its row of the result.
void TreeReducer::add(int member, int leaf, std::span<const float> row) {
  ledger_.claim(member, leaf, row.size());
  int node = tree_.leaf_node[static_cast<std::size_t>(member) * ledger_.owners().leaves + leaf];
  const bool is_first = tree_.first_leaf[member] == leaf;
  float* own = nullptr;  // null as long as the value is the caller's row
  for (;;) {
    float* sibling = swap_with_sibling(node, own);
    if (!sibling) {
      if (own) return;
      own = is_first ? result_row(member) : rows_.take();
      copy_row(pool_, own, row.data(), length_);
      continue;
    }
    const int parent = tree_.nodes[node].parent;
    const float* value = own ? own : row.data();
    if (tree_.nodes[parent].left == node) {
      float* out = own ? own : is_first ? result_row(member) : sibling;
      add_rows(pool_, out, value, sibling, length_);
      if (out != sibling) rows_.give_back(sibling);
      own = out;
    } else {
      add_rows(pool_, sibling, sibling, value, length_);
      if (own) rows_.give_back(own);
      own = sibling;
    }
    node = parent;
  }
}

std::span<const float> TreeReducer::finalize() {
  ledger_.end_on_all_ranks(communicator_);
  if (communicator_.size() > 1) {
    exchange();
    merge_slices();
    gather();
  }
  for (std::size_t member = 0; member < tree_.root.size(); ++member) {
    if (tree_.root[member] == ReductionTree::none) {
      std::fill_n(result_row(static_cast<int>(member)), length_, 0.0f);
    }
  }
  return {result_.data(), tree_.root.size() * static_cast<std::size_t>(length_)};
}

std::vector<std::int64_t> TreeReducer::slice_lengths() const {
  std::vector<std::int64_t> lengths(communicator_.size());
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    lengths[rank] = slice_begin_[rank + 1] - slice_begin_[rank];
  }
  return lengths;
}

// In round i every rank sends slices of its i-th sub-tree; the row itself is the send buffer.
void TreeReducer::exchange() {
  const int ranks = communicator_.size(), own = communicator_.rank();
  const std::vector<std::int64_t> slices = slice_lengths();
  const std::int64_t begin = slice_begin_[own], length = slices[own];
  std::size_t rounds = 0, others = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    rounds = std::max(rounds, tree_.held[rank].size());
    if (rank != own) others += tree_.held[rank].size();
  }
  float* free_space = grow(received_, static_cast<std::int64_t>(others) * length);
  const std::vector<std::int64_t> nothing(ranks, 0);
  const MutexLock lock(mutex_);  // no leaf is added any more
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<std::int64_t> counts(ranks, 0);
    float* const received = free_space;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == own || round >= tree_.held[rank].size()) continue;
      slice_[tree_.held[rank][round]] = free_space;
      counts[rank] = length;
      free_space += length;
    }
    const std::span<float> recv(received, free_space - received);
    if (round < tree_.held[own].size()) {
      const int node = tree_.held[own][round];
      slice_[node] = value_[node] + begin;
      bytes_sent_ += (length_ - length) * static_cast<std::int64_t>(sizeof(float));
      communicator_.all_to_all(std::span<const float>(value_[node], length_), slices, recv, counts);
    } else {
      communicator_.all_to_all(std::span<const float>(), nothing, recv, counts);
    }
  }
}

// Finishes all trees on this rank's slice; each thread takes one range through the whole tree.
void TreeReducer::merge_slices() {
  const std::int64_t begin = slice_begin_[communicator_.rank()];
  std::vector<int> mixed;
  for (int i = 0; i < std::ssize(tree_.nodes); ++i) {
    const ReductionTree::Node& node = tree_.nodes[i];
    if (node.owner != ReductionTree::mixed) continue;
    mixed.push_back(i);
    slice_[i] =
        node.parent == ReductionTree::none ? result_row(node.member) + begin : slice_[node.left];
  }
  const std::int64_t length = slice_begin_[communicator_.rank() + 1] - begin;
  for_row_ranges(pool_, length, [&](std::int64_t first, std::int64_t count) {
    for (const int i : mixed) {
      const ReductionTree::Node& node = tree_.nodes[i];
      add_range(slice_[i] + first, slice_[node.left] + first, slice_[node.right] + first, count);
    }
  });
  // Members that one rank holds alone.
  for (const int root : tree_.root) {
    if (root == ReductionTree::none) continue;
    float* out = result_row(tree_.nodes[root].member) + begin;
    if (slice_[root] != out) copy_row(pool_, out, slice_[root], length);
  }
}

// Slices are in rank order, so that a row of the result is gathered in place.
void TreeReducer::gather() {
  const int ranks = communicator_.size(), own = communicator_.rank();
  const std::vector<std::int64_t> slices = slice_lengths();
  for (const int root : tree_.root) {
    if (root == ReductionTree::none) continue;
    const std::span<float> row(result_row(tree_.nodes[root].member), length_);
    communicator_.all_gather(std::span<const float>(row.subspan(slice_begin_[own], slices[own])),
                             row, slices);
    bytes_sent_ += slices[own] * (ranks - 1) * static_cast<std::int64_t>(sizeof(float));
  }
}

}  // namespace

std::unique_ptr<GradientReducer> make_tree_reducer(Communicator& communicator, std::int64_t length,
                                                   ThreadPool& pool) {
  return std::make_unique<TreeReducer>(communicator, length, pool);
}

}  // namespace tpudist
