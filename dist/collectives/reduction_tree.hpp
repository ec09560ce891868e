#pragma once

#include <cstdint>
#include <vector>

#include "dist/collectives/gradient_reducer.hpp"

namespace tpudist {

// The fixed binary trees of all members over leaf numbers, padded to a power of two, without the
// absent leaves. Each inner node has two children with at least one leaf each. The trees do not
// depend on the number of ranks; only the owners do. Children precede their parents, and the nodes
// of a member precede those of the next.
struct ReductionTree {
  static constexpr int none = -1;   // no such node
  static constexpr int mixed = -2;  // owner of a node whose leaves lie on several ranks

  struct Node {
    int parent = none, left = none, right = none;
    int owner = none;  // the rank that holds all leaves below it, or mixed
    int member = 0;
  };

  std::vector<Node> nodes;
  std::vector<int> root;        // [members], none for a member without leaves
  std::vector<int> first_leaf;  // [members], its leaf number; none for a member without leaves
  std::vector<int> leaf_node;   // [members, leaves], none where the leaf is absent

  // For each rank the largest sub-trees that it holds completely, by member and leaf.
  std::vector<std::vector<int>> held;
};

// LeafLedger must have checked `owners`.
ReductionTree make_reduction_tree(const LeafOwners& owners, int ranks);

// [ranks + 1]: rank r works on elements [begin[r], begin[r + 1]) of every row, a multiple of 16
// except on the last rank.
std::vector<std::int64_t> slice_begins(std::int64_t length, int ranks);

// Most that a rank sends or receives in a step, slices and gathered sums together.
struct ExchangeSize {
  double bytes = 0, messages = 0;  // messages that follow one another
};
// What ranks send: slices of their largest sub-trees, slices of their leaves (DeviceReducer), or the
// sums of an all_reduce in a ring.
enum class Exchanged { trees, leaves, ring };
// `row_bytes`: of a leaf's row.
ExchangeSize exchange_size(const LeafOwners& owners, int ranks, double row_bytes, Exchanged what);

}  // namespace tpudist
