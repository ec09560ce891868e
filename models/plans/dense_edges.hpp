#pragma once

#include <cstdint>
#include <span>

#include "models/plans/dense_rows.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// One edge set of a dense plan over the rows of all slates. Edges along the graph connect rows of
// the same configuration. `nodes` connects all rows of a configuration, `configs` the rows of a
// node in all configurations of the slate. Pure, thread-safe.
EdgeSet make_dense_edge_set(std::span<const PlanSlate> slates, EdgeKind kind,
                            Aggregation aggregation, const DenseRows& rows);

// Number of needed neighbourhoods of an edge set, if the first `places` places after the layer are
// needed.
std::int64_t needed_neighbourhoods(const EdgeSet& set, EdgeKind kind, const DenseRows& rows,
                                   std::int64_t places);

}  // namespace tpudist
