#pragma once

#include <cstdint>
#include <span>

#include "models/plans/dense_rows.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// One edge set of a dense plan over the rows of all slates. Edges along the graph take the rows of
// the same configuration at the other ends; `nodes` takes all rows of a configuration, `configs` the
// rows of a node in all configurations of the slate. Pure, thread-safe.
EdgeSet make_dense_edge_set(std::span<const PlanSlate> slates, EdgeKind kind,
                            Aggregation aggregation, const DenseRows& rows);

// How many neighbourhoods of an edge set are needed, when the first `places` places behind the
// layer are.
std::int64_t needed_neighbourhoods(const EdgeSet& set, EdgeKind kind, const DenseRows& rows,
                                   std::int64_t places);

}  // namespace tpudist
