#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// Which slates an epoch holds: `rows`: every row about once an epoch, so that a graph counts by its number of configurations; `graphs`: every graph the
// same number of slates (as many as the mean graph has).
enum class DrawMode { rows, graphs };

struct OrderOptions {
  std::uint64_t seed = 1;         // seed.order
  int slates_per_batch = 4;
  int configs_per_slate = 10;     // K
  DrawMode draw = DrawMode::rows;
};

// One slate of a batch.
struct SlateId {
  int graph = 0;
  std::int64_t epoch = 0;
  std::int64_t number = 0;  // slate number within (graph, epoch)
  double weight = 1;        // 0 for the filling of an epoch's last batch
};

// The order of training: item i of step s is a pure function of (seed, selection hash, K, row counts); ranks and threads only decide who
// computes it. O(graphs) memory, O(1) state to resume (the step). Immutable, thread-safe.
class SlateOrder {
 public:
  SlateOrder(const OrderOptions& options, std::vector<std::int64_t> rows_per_graph, std::uint64_t selection_hash);

  std::int64_t steps_per_epoch() const;

  // Item `index` (< slates_per_batch) of `step` (from 0).
  SlateId item(std::int64_t step, int index) const;

  // The rows of a slate: K of them, or all when the graph has fewer. Slates of one (graph, epoch) are disjoint; a graph's last rows (fewer than K) wait for
  // another epoch's permutation. `member` = -1 for order: shared; else that member's own permutation of the same graph.
  std::vector<std::int64_t> rows(const SlateId& slate, int member = -1) const;

 private:
  OrderOptions options_;
  std::vector<std::int64_t> rows_per_graph_;
  std::vector<std::int64_t> first_slate_;  // [graphs + 1], prefix sums of slates per epoch
  std::uint64_t key_;
};

}  // namespace tpudist
