#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/join_plans.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// An index with its transpose: row i of the result is row index[i] >= 0 of the input. Borrowed.
struct GatherView {
  GatherView() = default;  // the identity
  GatherView(const GatherIndex& gather)
      : index(gather.index), transposed(gather.is_identity() ? nullptr : &gather.transposed) {}
  GatherView(std::span<const std::int32_t> index, const Csr& transposed)
      : index(index), transposed(&transposed) {}
  bool is_identity() const { return transposed == nullptr; }
  std::span<const std::int32_t> index;
  const Csr* transposed = nullptr;
};

// The rows after a plan layer, by their neighbourhood, which is called a group here. The layer's
// only edge set runs along nodes or along configurations. So a group is all nodes of a
// configuration, or all configurations of a node. A row belongs to one group, with a multiplicity.
// Borrows the plan layer.
struct RowGroups {
  // Throws Error when the layer has another shape, or when a group lacks some of its rows.
  explicit RowGroups(const PlanLayer& layer);

  std::int64_t groups() const { return static_cast<std::int64_t>(size.size()); }
  const Csr& rows;                       // for each group its rows
  std::span<const std::int32_t> of_row;  // [rows after the layer] the group of each row
  std::vector<float> count;  // [rows after the layer] how often a row counts in its group
  std::vector<double> size;  // [groups] sum of the counts
};

// The neighbours of the rows after a plan layer one by one, for layers in which a neighbour's share
// depends on the row that takes it. An entry is one row after the layer with one row before it.
// Equal neighbours of a row are one entry with a count. The first entry of a row is its own state;
// its neighbours along all edge sets of the layer follow. In a joined plan entries are a kind of
// rows, with padding that no row takes.
struct NeighbourEntries {
  // `units`: of a joined plan, which gets the kind; otherwise null. Throws Error if the number of
  // entries does not fit 32 bits.
  explicit NeighbourEntries(const PlanLayer& layer, JoinedUnits* units = nullptr);

  // Gather entries from rows before the layer, and from rows after it.
  GatherView sources() const { return {source, of_source}; }
  GatherView rows() const { return {of_row.transposed.source, of_row.forward}; }

  std::vector<std::int32_t> source;  // [entries]
  Csr of_source;                     // the transpose of this index
  SparseMatrix of_row;               // [rows after the layer] <- entries, weights 1
  std::vector<float> count;          // [entries]
};

}  // namespace tpudist
