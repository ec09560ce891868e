#pragma once

#include <cstdint>
#include <vector>

#include "models/operators/gather_view.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// The neighbours of the rows after a plan layer one by one, for layers in which what a neighbour
// adds depends on the row that takes it: an entry is one row after the layer with one row before
// it. Equal neighbours of a row are one entry with a count. The first entry of a row is its own
// state; its neighbours along all edge sets of the layer follow.
struct NeighbourEntries {
  // Throws Error when there are more entries than 32 bits count.
  explicit NeighbourEntries(const PlanLayer& layer);

  // From rows before, and from rows after the layer to entries.
  GatherView sources() const { return {source, of_source}; }
  GatherView rows() const { return {of_row.transposed.source, of_row.forward}; }

  std::vector<std::int32_t> source;  // [entries]
  Csr of_source;                     // the transpose of this index
  SparseMatrix of_row;               // [rows after the layer] <- entries, weights 1
  std::vector<float> count;          // [entries]
};

}  // namespace tpudist
