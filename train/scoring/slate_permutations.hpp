#pragma once

#include <cstdint>
#include <vector>

#include "data/loading/dataset.hpp"
#include "train/experiment/scoring_block.hpp"
#include "train/scoring/scoring_blocks.hpp"

namespace tpudist {

// The orders in which the distinct rows of graphs are cut into blocks: the given order, or one
// order for each permutation of ScoringSlates. A place is a graph in one of these orders. The
// places of a graph are consecutive, in the order of permutations. Immutable.
class SlatePermutations {
 public:
  // A permutation depends on seed, its own number, and the graph's name and distinct row count.
  SlatePermutations(const Dataset& dataset, const std::vector<DistinctRows>& graphs,
                    const ScoringSlates& slates);

  int count() const { return count_; }
  // [graphs x count] the rows of each place, in the order in which blocks are cut.
  const std::vector<DistinctRows>& rows() const { return rows_; }
  // Repeats each graph's value for all of its places. [graphs] to [graphs x count].
  std::vector<BlockEstimate> repeat(const std::vector<BlockEstimate>& graphs) const;

  std::size_t graph_of(std::size_t place) const { return place / static_cast<std::size_t>(count_); }
  // Index of the i-th row of a place among the distinct rows of its graph.
  std::size_t position(std::size_t place, std::int64_t i) const {
    return static_cast<std::size_t>(permuted_ ? rows_[place].index[i] : i);
  }

 private:
  bool permuted_;
  int count_;
  std::vector<DistinctRows> rows_;  // if permuted, `index` is the position
};

}  // namespace tpudist
