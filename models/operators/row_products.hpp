#pragma once

#include <ATen/core/Tensor.h>

#include "models/operators/backend.hpp"
#include "models/operators/gather_view.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// Products of rows, head by head: a row of H x A channels is H vectors of A. Attention without a
// softmax adds up key x value over many rows once, and multiplies the sum by each query. All are
// float32 or double and differentiable. On the CPU neighbourhoods and blocks of rows are tasks of
// the pool, and the bits do not depend on the number of threads. Matrix, index, pool and device must
// outlive the recorded graph.

// s[n] = the sum over the rows r of neighbourhood n of a_r b_r^T for each head: a is [M, rows, H x
// A], b [M, rows, H x B], s [M, neighbourhoods, H x A x B]. The weights of the matrix are
// multiplicities.
at::Tensor sum_products(const SparseMatrix& matrix, const at::Tensor& a, const at::Tensor& b,
                        std::int64_t heads, const Backend& backend);

// y[r] = x_r^T s[index[r]] for each head: x is [M, rows, H x A], s [M, n, H x A x B], y [M, rows, H x
// B].
at::Tensor apply_products(const at::Tensor& x, const at::Tensor& s, const GatherView& index,
                          std::int64_t heads, const Backend& backend);

}  // namespace tpudist
