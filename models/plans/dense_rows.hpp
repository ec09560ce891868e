#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/plans/build_plan.hpp"
#include "models/plans/graph_edges.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// The positions of a dense plan's rows, the same in all layers. Each (slate, node) has one place,
// which holds one row for each configuration. Places that are needed in more layers come first.
// Immutable, thread-safe.
class DenseRows {
 public:
  struct Place {
    std::int32_t slate, node;
  };

  // `slates` is borrowed for the call; build_dense_plan must have checked it.
  DenseRows(std::span<const PlanSlate> slates, const PlanShape& shape);

  // [places]
  const std::vector<Place>& places() const { return places_; }
  std::int64_t rows() const { return begin_.back(); }
  // Number of replicas that share one matrix: the configurations of a slate if all slates have
  // equally many; otherwise 1.
  std::int64_t replicas() const { return replicas_; }
  // Rows needed before layer `layer`, or after the last.
  std::int64_t needed(std::size_t layer) const { return begin_[needed_places_[layer]]; }
  std::int64_t needed_places(std::size_t layer) const { return needed_places_[layer]; }
  std::int64_t first_row(std::int64_t place) const { return begin_[place]; }
  std::int64_t first_row(std::size_t slate, std::int32_t node) const {
    return begin_[place_[slate][node]];
  }
  const GraphEdges& edges(std::size_t slate) const;  // of the slate's graph

 private:
  struct GraphShape;
  std::int64_t replicas_;
  std::vector<std::shared_ptr<const GraphShape>> graph_;  // [slates]
  std::vector<std::vector<std::int32_t>> place_;          // [slates][nodes]
  std::vector<Place> places_;
  std::vector<std::int64_t> begin_;          // [places + 1] first row
  std::vector<std::int64_t> needed_places_;  // [depth + 1]
};

// One edge set of a dense plan over the rows of all slates. Edges along the graph connect rows of
// one configuration. `nodes` connects all rows of a configuration, `configs` the rows of a node in
// all configurations of its slate. Pure, thread-safe.
EdgeSet make_dense_edge_set(std::span<const PlanSlate> slates, EdgeKind kind,
                            Aggregation aggregation, const DenseRows& rows);

// Number of needed neighbourhoods of an edge set, if the first `places` places after the layer are
// needed.
std::int64_t needed_neighbourhoods(const EdgeSet& set, EdgeKind kind, const DenseRows& rows,
                                   std::int64_t places);

// The readout of a dense plan of `depth` layers: one cell for each configuration, with its needed
// rows. For a node that is not needed, the first configuration's row is common to the slate.
// `mean`: rows have the weight 1 / nodes instead of 1. Pure, thread-safe.
Readout make_dense_readout(std::span<const PlanSlate> slates, bool mean, const DenseRows& rows,
                           std::size_t depth);

}  // namespace tpudist
