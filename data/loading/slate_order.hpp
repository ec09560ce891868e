#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// Which slates an epoch holds: `rows`: every row about once an epoch, so that a graph counts by its
// number of configurations; `graphs`: every graph the same number of slates (as many as the mean
// graph has).
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
  double weight = 1;        // 0 for the filling of an epoch's last batch

  bool operator==(const SlateId&) const = default;
};

// The order of training: item i of step s is a pure function of (seed, selection hash, K, row
// counts, draw mode, slates per batch); ranks and threads only decide who computes it. One keyed
// permutation per epoch shuffles the slates of all graphs, and one per (graph, epoch[, member]) the
// rows of a graph. O(graphs) memory, O(1) state to resume (the step). Immutable, thread-safe.
class SlateOrder {
 public:
  // Throws ConfigError when a size is below 1 or no graph has a row.
  SlateOrder(const OrderOptions& options, std::vector<std::int64_t> rows_per_graph,
             std::uint64_t selection_hash);

  const OrderOptions& options() const { return options_; }
  std::int64_t slates_per_epoch() const { return first_slate_.back(); }
  std::int64_t steps_per_epoch() const;
  // Slates of one graph in each epoch.
  std::int64_t slates_of(int graph) const;

  // Item `index` (< slates_per_batch) of `step` (from 0). The filling of an epoch's last batch
  // repeats the epoch's first slates with weight 0.
  SlateId item(std::int64_t step, int index) const;

  // The rows of a slate: K of them, or all when the graph has fewer. Slates of one (graph, epoch)
  // are disjoint; a graph's last rows (fewer than K) wait for another epoch's permutation. With
  // DrawMode::graphs a small graph passes over its rows several times in an epoch, each pass with
  // its own permutation, and slates are disjoint within a pass. `member` = -1 for order: shared;
  // else that member's own permutation of the same graph.
  std::vector<std::int64_t> rows(const SlateId& slate, int member = -1) const;

 private:
  // Disjoint slates that one pass over the rows of a graph gives.
  std::int64_t slates_of_pass(std::int64_t rows) const;

  OrderOptions options_;
  std::vector<std::int64_t> rows_per_graph_;
  std::vector<std::int64_t> first_slate_;  // [graphs + 1], prefix sums of slates per epoch
  std::uint64_t key_;
};

}  // namespace tpudist
