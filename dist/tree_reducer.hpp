#pragma once

#include <mutex>
#include <vector>

#include "dist/leaf_ledger.hpp"
#include "dist/reduction_tree.hpp"
#include "dist/row_store.hpp"

namespace tpudist {

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
  void agree();
  void exchange();
  void merge_slices();
  void gather();
  std::int64_t slice_begin(int rank) const;
  std::vector<std::int64_t> slice_lengths() const;
  float* result_row(int member) { return result_.data() + member * length_; }

  Communicator& communicator_;
  const std::int64_t length_;
  ThreadPool& pool_;

  LeafLedger ledger_;
  ReductionTree tree_;
  std::mutex mutex_;           // guards value_ while leaves are added
  std::vector<float*> value_;  // [nodes], this rank's finished sub-trees, else null

  RowStore rows_;
  AlignedFloats result_;       // [members, length]; a member's first leaf starts here
  AlignedFloats received_;     // slices of the other ranks' sub-trees
  std::vector<float*> slice_;  // [nodes], this rank's slice of each held sub-tree, then of each sum
  std::int64_t bytes_sent_ = 0;
};

}  // namespace tpudist
