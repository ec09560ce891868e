#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// The slates of an epoch. `rows`: every row about once per epoch, so that a graph's weight is its
// number of configurations. `graphs`: equally many slates for each graph (the mean number). `root`:
// numbers in proportion to the square root of those of `rows`, with nearly the same sum.
enum class DrawMode { rows, graphs, root };

// The rows of a graph that form a slate.
//   uniform    any
//   close      neighbours by run time: of a window of kCloseSlates slates' rows, or of two windows
//   balanced   one of each of K equal parts of the rows by run time
//   fast       K without replacement in proportion to exp(-bias * place), with places by run time
//              from 0 (fastest) to 1; by Gumbel noise (Kool et al., "Stochastic beams and where to
//              find them", 2019). A row can be in several slates of an epoch, or in none
enum class SlateMix { uniform, close, balanced, fast };

struct OrderOptions {
  std::uint64_t seed = 1;  // seed.order
  int slates_per_batch = 4;
  int configs_per_slate = 10;  // K
  DrawMode draw = DrawMode::rows;
  SlateMix mix = SlateMix::uniform;
  double bias = 3;  // of SlateMix::fast
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
// counts, draw mode, slates per batch), not of ranks and threads. One keyed permutation per epoch
// shuffles the slates of all graphs, and one per (graph, epoch[, member]) shuffles the rows of a
// graph. O(graphs) memory; the step is the only state to resume. Immutable, thread-safe.
class SlateOrder {
 public:
  static constexpr std::int64_t kCloseSlates = 4;

  // `fastest_first`: each graph's rows by run time; unused for SlateMix::uniform. Throws
  // ConfigError if a size is below 1 or no graph has a row.
  SlateOrder(const OrderOptions& options, std::vector<std::int64_t> rows_per_graph,
             std::uint64_t selection_hash,
             std::vector<std::vector<std::int32_t>> fastest_first = {});

  const OrderOptions& options() const { return options_; }
  std::int64_t slates_per_epoch() const { return first_slate_.back(); }
  std::int64_t steps_per_epoch() const;
  // Number of slates of one graph in each epoch.
  std::int64_t slates_of(int graph) const;

  // Item `index` (< slates_per_batch) of `step` (from 0). The epoch's first slates, at weight 0,
  // fill up its last batch.
  SlateId item(std::int64_t step, int index) const;

  // The rows of a slate: K, or all if the graph has fewer. Slates of one (graph, epoch) are
  // disjoint; the last rows of a permutation (fewer than K) are not used in that epoch. With
  // DrawMode::graphs, an epoch passes several times over the rows of a small graph, each time with
  // another permutation, and slates are disjoint within a pass. `member`: -1 for the shared order,
  // else that member's own permutation of the rows. SlateMix describes other mixes than `uniform`;
  // a graph of at most K rows always gives all rows.
  std::vector<std::int64_t> rows(const SlateId& slate, int member = -1) const;

 private:
  // Number of disjoint slates in one pass over `rows` rows of a graph.
  std::int64_t slates_of_pass(std::int64_t rows) const;
  // The rows of a slate of a pass, as positions in the order by run time.
  std::vector<std::int64_t> mixed_places(std::int64_t total, std::int64_t slate,
                                         std::uint64_t pass_key) const;

  OrderOptions options_;
  std::vector<std::int64_t> rows_per_graph_;
  std::vector<std::vector<std::int32_t>> fastest_first_;
  std::vector<std::int64_t> first_slate_;  // [graphs + 1], prefix sums of slates per epoch
  std::uint64_t key_;
};

}  // namespace tpudist
