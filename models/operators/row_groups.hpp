#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

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

}  // namespace tpudist
