#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "dist/collectives/communicator.hpp"
#include "train/experiment/scoring_block.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {

// Number of rows of a graph to score, at most `most_rows` (0 = all).
std::int64_t scored_rows(const Dataset& dataset, int graph, std::int64_t most_rows);

// The rows to score, ascending, drawn by a permutation that is the same in every run.
std::vector<std::int64_t> choose_rows(const Dataset& dataset, int graph, std::int64_t most_rows);

// The distinct configurations among some rows of a graph.
struct DistinctRows {
  int graph = 0;
  std::vector<std::int64_t> rows;   // [d] the first row of each distinct configuration
  std::vector<std::int64_t> index;  // [requested rows] index into `rows`
};
DistinctRows distinct_rows(const Dataset& dataset, int graph, std::span<const std::int64_t> rows);

// The way to score one graph, estimated from sample plans of its rows: a pure function of the
// graph, its rows, the network and the configured block.
struct BlockEstimate {
  std::int64_t block = 1;  // configurations scored in one plan, except in the last block
  bool even = false;       // blocks are nearly equal, of at most `block` configurations
  double work = 0;         // per configuration and member (UnitEstimate::forward_work)
  double flop = 0;         // the arithmetic of `work` alone
};
BlockEstimate estimate_scoring(const UnitBuilder& units, const Dataset& dataset,
                               const DistinctRows& graph, const ScoringBlock& block);

// The same for several graphs. Collective: the ranks share the sample plans, and all ranks get
// bit-identical numbers.
std::vector<BlockEstimate> estimate_scoring(const UnitBuilder& units, const Dataset& dataset,
                                            const std::vector<DistinctRows>& graphs,
                                            const ScoringBlock& block, ThreadPool& pool,
                                            Communicator& world);

// A piece of work: a block of distinct configurations of one graph, for consecutive members.
struct Block {
  std::size_t place = 0;  // index of the graph among the scored graphs
  std::int64_t first = 0, count = 0;
  int first_member = 0, members = 0;
};

// Cuts all graphs into blocks of configurations. If there are fewer than `wanted` pieces, splits
// the members of each block, too; the scores do not depend on the split.
std::vector<Block> cut_blocks(const std::vector<DistinctRows>& graphs,
                              const std::vector<BlockEstimate>& scoring, int members,
                              std::int64_t wanted);

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

// Makes the units to score `count` configurations from `first` on, one after another, and calls
// `visit` with each unit. Usually one unit: if its plan turns out larger than `block` allows, each
// half of the configurations gets a unit of its own.
using UnitMaker = std::function<Unit(std::int64_t first, std::int64_t count)>;
using UnitVisitor = std::function<void(std::int64_t first, std::int64_t count, const Unit& unit)>;
void for_fitting_units(const UnitBuilder& units, std::int64_t first, std::int64_t count,
                       const ScoringBlock& block, const UnitMaker& make, const UnitVisitor& visit);
// The same for distinct rows of a graph, all with the draw of nodes `draw`.
void for_fitting_units(const UnitBuilder& units, const DistinctRows& graph, std::int64_t first,
                       std::int64_t count, const ScoringBlock& block, std::uint64_t draw,
                       const UnitVisitor& visit);

// The cost of scoring graphs of a dataset.
struct ScoringCost {
  std::int64_t graphs = 0;
  std::int64_t rows = 0;      // measured rows, of all graphs
  std::int64_t distinct = 0;  // distinct configurations to compute among these rows
  double flop = 0;            // arithmetic of all members, floating-point operations
  double work = 0;            // the arithmetic and the states (UnitEstimate::forward_work)

  ScoringCost& operator+=(const ScoringCost& other);
};
ScoringCost scoring_cost(const UnitBuilder& units, const Dataset& dataset, int members,
                         std::int64_t most_rows, const ScoringBlock& block, ThreadPool& pool);

}  // namespace tpudist
