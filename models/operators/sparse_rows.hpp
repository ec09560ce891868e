#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/operators/backend.hpp"
#include "models/operators/gather_view.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

// Operators whose rows are taken from, or aggregated over, other rows of a plan. Tensors are [M,
// rows, C], float32 or double. All are differentiable.
// Their backward passes gather by the transposed matrices, without atomics, in the order of the
// entries. On the CPU blocks of rows are tasks of the pool, and the bits do not depend on the
// number of threads. Plan, pool and device must outlive the graph that the calls record.

namespace tpudist {

// y[i] = x[index[i]]
at::Tensor gather_rows(const at::Tensor& x, const GatherView& index, const Backend& backend);

// One term of sum_of_gathered.
struct GatheredTerm {
  at::Tensor x;
  GatherView index;
};
// y[i] = the sum over the terms of x[index[i]], added in their order. All terms have equally many
// rows.
at::Tensor sum_of_gathered(const std::vector<GatheredTerm>& terms, const Backend& backend);

// y[n] = the aggregation of the rows of neighbourhood n. The weights of the matrix must be
// multiplicities (LayerShape::aggregation sum or max); the mean divides by their sum. Equal largest
// rows share the gradient of a maximum in proportion to their multiplicities. An empty
// neighbourhood gives 0.
at::Tensor aggregate_rows(const SparseMatrix& matrix, const at::Tensor& x, Aggregation aggregation,
                          const Backend& backend);

}  // namespace tpudist
