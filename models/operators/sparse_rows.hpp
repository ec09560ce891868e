#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/thread_pool.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

// Operators that take rows of a plan from other rows. Tensors are [rows, M, C], float32 or double, and
// the members M are columns like the channels C. All are differentiable; their backward passes gather
// by the transposed matrices, without atomics, in the order of the entries. Blocks of rows are tasks
// of the pool, and the bits do not depend on the number of threads. Plan and pool must outlive the
// graph that the calls record.

namespace tpudist {

// An index with its transpose: row i of the result takes row index[i] >= 0. Borrowed.
struct TakeIndex {
  TakeIndex() = default;  // the identity
  TakeIndex(const GatherIndex& gather)
      : index(gather.index), transposed(gather.is_identity() ? nullptr : &gather.transposed) {}
  TakeIndex(std::span<const std::int32_t> index, const Csr& transposed)
      : index(index), transposed(&transposed) {}
  bool is_identity() const { return transposed == nullptr; }
  std::span<const std::int32_t> index;
  const Csr* transposed = nullptr;
};

// y[i] = x[index[i]]
at::Tensor take_rows(const at::Tensor& x, const TakeIndex& index, ThreadPool& pool);

// One term of sum_of_taken.
struct TakenTerm {
  at::Tensor x;
  TakeIndex index;
};
// y[i] = the sum over the terms of x[index[i]], added in their order; all terms have as many rows.
at::Tensor sum_of_taken(const std::vector<TakenTerm>& terms, ThreadPool& pool);

// y[n] = what the aggregation makes of the rows of neighbourhood n. The weights of the matrix must be
// multiplicities (LayerShape::aggregation sum or max); the mean divides by their sum. Equal largest
// rows share the gradient of a maximum by their multiplicities. An empty neighbourhood gives 0.
at::Tensor aggregate_rows(const SparseMatrix& matrix, const at::Tensor& x, Aggregation aggregation,
                          ThreadPool& pool);

}  // namespace tpudist
