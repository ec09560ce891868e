#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// The slates of an epoch. `rows`: every row about once per epoch, so that a graph's weight is its
// number of configurations. `graphs`: the same number of slates for each graph (that of the mean
// graph).
enum class DrawMode { rows, graphs };

struct OrderOptions {
  std::uint64_t seed = 1;  // seed.order
  int slates_per_batch = 4;
  int configs_per_slate = 10;  // K
  DrawMode draw = DrawMode::rows;
};

// One slate of a batch.
struct SlateId {
  int graph = 0;
  std::int64_t epoch = 0;
  std::int64_t number = 0;  // slate number within (graph, epoch)
  double weight = 1;        // 0 for slates that fill up an epoch's last batch

  bool operator==(const SlateId&) const = default;
};

// The order of training. Item i of step s is a pure function of (seed, selection hash, K, row
// counts, draw mode, slates per batch); it does not depend on ranks and threads. One keyed
// permutation per epoch shuffles the slates of all graphs, and one per (graph, epoch[, member]) the
// rows of a graph. O(graphs) memory; the step is the only state to resume. Immutable, thread-safe.
class SlateOrder {
 public:
  // Throws ConfigError when a size is below 1 or no graph has a row.
  SlateOrder(const OrderOptions& options, std::vector<std::int64_t> rows_per_graph,
             std::uint64_t selection_hash);

  const OrderOptions& options() const { return options_; }
  std::int64_t slates_per_epoch() const { return first_slate_.back(); }
  std::int64_t steps_per_epoch() const;
  // Number of slates of one graph in each epoch.
  std::int64_t slates_of(int graph) const;

  // Item `index` (< slates_per_batch) of `step` (from 0). An epoch's last batch is filled up with
  // the epoch's first slates, at weight 0.
  SlateId item(std::int64_t step, int index) const;

  // The rows of a slate: K, or all when the graph has fewer. Slates of one (graph, epoch) are
  // disjoint; the last rows of a permutation (fewer than K) are not used in that epoch. With
  // DrawMode::graphs an epoch passes several times over the rows of a small graph, each time with
  // another permutation; slates are then disjoint within a pass. `member`: -1 for the shared order,
  // else that member has its own permutation of the rows.
  std::vector<std::int64_t> rows(const SlateId& slate, int member = -1) const;

 private:
  // Number of disjoint slates in one pass over `rows` rows of a graph.
  std::int64_t slates_of_pass(std::int64_t rows) const;

  OrderOptions options_;
  std::vector<std::int64_t> rows_per_graph_;
  std::vector<std::int64_t> first_slate_;  // [graphs + 1], prefix sums of slates per epoch
  std::uint64_t key_;
};

}  // namespace tpudist
