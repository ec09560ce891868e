#include "dist/collectives/reduction_tree.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>

namespace tpudist {
namespace {

// Adds the nodes over leaves [first, first + width) of the member. Returns the top one, or none.
int add_nodes(const LeafOwners& owners, int member, std::int64_t first, std::int64_t width,
              ReductionTree& tree) {
  constexpr int none = ReductionTree::none;
  if (first >= owners.leaves) return none;
  if (width == 1) {
    const int leaf = static_cast<int>(first), owner = owners.of(member, leaf);
    if (owner < 0) return none;
    if (tree.first_leaf[member] == none) tree.first_leaf[member] = leaf;
    tree.nodes.push_back({.owner = owner, .member = member});
    return tree.leaf_node[static_cast<std::size_t>(member) * owners.leaves + leaf] =
               static_cast<int>(tree.nodes.size()) - 1;
  }
  const int left = add_nodes(owners, member, first, width / 2, tree);
  const int right = add_nodes(owners, member, first + width / 2, width / 2, tree);
  if (left == none) return right;
  if (right == none) return left;
  const int parent = static_cast<int>(tree.nodes.size()), owner = tree.nodes[left].owner;
  tree.nodes[left].parent = tree.nodes[right].parent = parent;
  tree.nodes.push_back({.left = left,
                        .right = right,
                        .owner = owner == tree.nodes[right].owner ? owner : ReductionTree::mixed,
                        .member = member});
  return parent;
}

}  // namespace

ReductionTree make_reduction_tree(const LeafOwners& owners, int ranks) {
  ReductionTree tree;
  tree.first_leaf.assign(owners.members, ReductionTree::none);
  tree.leaf_node.assign(owners.owner.size(), ReductionTree::none);
  const auto width = static_cast<std::int64_t>(std::bit_ceil(static_cast<unsigned>(owners.leaves)));
  for (int member = 0; member < owners.members; ++member) {
    tree.root.push_back(add_nodes(owners, member, 0, width, tree));
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

ExchangeSize exchange_size(const LeafOwners& owners, int ranks, double row_bytes, Exchanged what) {
  const double others = ranks - 1;
  if (what == Exchanged::ring) return {2 * others / ranks * owners.members * row_bytes, 2 * others};
  const bool leaves = what == Exchanged::leaves;
  const ReductionTree tree = make_reduction_tree(owners, ranks);
  const auto sums =
      static_cast<double>(std::ranges::count_if(tree.root, [](int root) { return root >= 0; }));
  std::vector<double> rows;  // that a rank has
  for (const std::vector<int>& held : tree.held) rows.push_back(leaves ? 0 : std::ssize(held));
  for (const int owner : owners.owner)
    if (owner >= 0 && leaves) ++rows[owner];
  const auto [least, most] = std::ranges::minmax(rows);
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  // NCCL sends a rank's leaves, and then the sums, in one group.
  return {(std::max(most * others, all - least) + sums * others) * row_bytes / ranks,
          (leaves ? 2 : most + sums) * others};
}

}  // namespace tpudist
