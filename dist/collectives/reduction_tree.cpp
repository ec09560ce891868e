#include "dist/collectives/reduction_tree.hpp"

#include <bit>
#include <cstddef>

namespace tpudist {
namespace {

class TreeBuilder {
 public:
  TreeBuilder(const LeafOwners& owners, ReductionTree& tree) : owners_(owners), tree_(tree) {}

  // The node over leaves [first, first + width) of the member, or none.
  int build(int member, std::int64_t first, std::int64_t width) {
    if (first >= owners_.leaves) return ReductionTree::none;
    if (width == 1) return add_leaf(member, static_cast<int>(first));
    const int left = build(member, first, width / 2);
    const int right = build(member, first + width / 2, width / 2);
    if (left == ReductionTree::none) return right;
    if (right == ReductionTree::none) return left;
    const int parent = static_cast<int>(tree_.nodes.size());
    const int owner = tree_.nodes[left].owner;
    tree_.nodes[left].parent = tree_.nodes[right].parent = parent;
    tree_.nodes.push_back(
        {.left = left,
         .right = right,
         .owner = owner == tree_.nodes[right].owner ? owner : ReductionTree::mixed,
         .member = member});
    return parent;
  }

 private:
  int add_leaf(int member, int leaf) {
    if (owners_.of(member, leaf) < 0) return ReductionTree::none;
    const int node = static_cast<int>(tree_.nodes.size());
    tree_.nodes.push_back({.owner = owners_.of(member, leaf), .member = member});
    tree_.leaf_node[static_cast<std::size_t>(member) * owners_.leaves + leaf] = node;
    if (tree_.first_leaf[member] == ReductionTree::none) tree_.first_leaf[member] = leaf;
    return node;
  }

  const LeafOwners& owners_;
  ReductionTree& tree_;
};

}  // namespace

ReductionTree make_reduction_tree(const LeafOwners& owners, int ranks) {
  ReductionTree tree;
  tree.first_leaf.assign(owners.members, ReductionTree::none);
  tree.leaf_node.assign(owners.owner.size(), ReductionTree::none);
  TreeBuilder builder(owners, tree);
  const auto width = static_cast<std::int64_t>(std::bit_ceil(static_cast<unsigned>(owners.leaves)));
  for (int member = 0; member < owners.members; ++member) {
    tree.root.push_back(builder.build(member, 0, width));
  }
  tree.held.resize(ranks);
  for (int i = 0; i < std::ssize(tree.nodes); ++i) {
    const ReductionTree::Node& node = tree.nodes[i];
    if (node.owner == ReductionTree::mixed) continue;
    const bool maximal =
        node.parent == ReductionTree::none || tree.nodes[node.parent].owner == ReductionTree::mixed;
    if (maximal) tree.held[node.owner].push_back(i);
  }
  return tree;
}

std::vector<std::int64_t> slice_begins(std::int64_t length, int ranks) {
  std::vector<std::int64_t> begin;
  for (int rank = 0; rank < ranks; ++rank) begin.push_back(length * rank / ranks / 16 * 16);
  begin.push_back(length);
  return begin;
}

}  // namespace tpudist
