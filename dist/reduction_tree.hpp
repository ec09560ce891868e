#pragma once

#include <cstdint>
#include <vector>

#include "dist/gradient_reducer.hpp"

namespace tpudist {

// The fixed binary trees of all members, over leaf numbers padded to a power of two, with the
// absent leaves taken out: an inner node has two children, each with at least one leaf. It is the
// same for any number of ranks; only the owners differ. Children stand before their parents.
struct ReductionTree {
  static constexpr int none = -1;   // no such node
  static constexpr int mixed = -2;  // owner of a node whose leaves lie on several ranks

  struct Node {
    int parent = none, left = none, right = none;
    int owner = none;  // the rank that holds all leaves below, or mixed
    int member = 0;
  };

  std::vector<Node> nodes;
  std::vector<int> root;        // [members], none for a member without a leaf
  std::vector<int> first_leaf;  // [members], the leaf number, none for a member without a leaf
  std::vector<int> leaf_node;   // [members, leaves], none where the leaf is absent

  // By rank: the maximal sub-trees that it holds, in the order of members and leaves.
  std::vector<std::vector<int>> held;
};

// The owners are those of a LeafLedger, which checked them.
ReductionTree make_reduction_tree(const LeafOwners& owners, int ranks);

}  // namespace tpudist
