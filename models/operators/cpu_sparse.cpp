#include <ATen/ATen.h>

#include "models/kernels/row_kernels.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/row_tasks.hpp"
#include "models/operators/typed_rows.hpp"

namespace tpudist {
namespace {

// The product of a matrix with dense rows.
at::Tensor multiply(const Csr& matrix, std::int64_t replicas, const at::Tensor& x,
                    ThreadPool& pool) {
  at::Tensor y = rows_like(x, matrix.rows() * replicas);
  for_row_blocks(pool, y.size(0), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "multiply", [&] {
      add_entries(matrix, replicas, first, count, x.const_data_ptr<scalar_t>(), columns(x),
                  y.mutable_data_ptr<scalar_t>() + first * columns(x));
    });
  });
  return y;
}

// Divides each row by the number of its neighbours.
void divide(const SparseMatrix& matrix, at::Tensor& y, ThreadPool& pool) {
  for_row_blocks(pool, y.size(0), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "divide", [&] {
      divide_by_totals(matrix.forward, matrix.replicas, first, count, columns(y),
                       y.mutable_data_ptr<scalar_t>() + first * columns(y));
    });
  });
}

at::Tensor largest(const SparseMatrix& matrix, const at::Tensor& x, ThreadPool& pool) {
  at::Tensor best = rows_like(x, matrix.forward.rows() * matrix.replicas);
  for_row_blocks(pool, best.size(0), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "largest", [&] {
      segment_max(matrix.forward, matrix.replicas, first, count, x.const_data_ptr<scalar_t>(),
                  columns(x), best.mutable_data_ptr<scalar_t>() + first * columns(x));
    });
  });
  return best;
}

// `share`: the gradient of `best`. It is overwritten.
at::Tensor largest_gradient(const SparseMatrix& matrix, const at::Tensor& x, const at::Tensor& best,
                            const at::Tensor& share, ThreadPool& pool) {
  const std::int64_t width = columns(x);
  at::Tensor d_x = at::empty_like(x);
  for_row_blocks(pool, share.size(0), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "shares", [&] {
      share_of_largest(matrix.forward, matrix.replicas, first, count, x.const_data_ptr<scalar_t>(),
                       best.const_data_ptr<scalar_t>() + first * width, width,
                       share.mutable_data_ptr<scalar_t>() + first * width);
    });
  });
  for_row_blocks(pool, x.size(0), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "segment_max_backward", [&] {
      gradient_of_largest(matrix.transposed, matrix.replicas, first, count,
                          x.const_data_ptr<scalar_t>() + first * width,
                          best.const_data_ptr<scalar_t>(), share.const_data_ptr<scalar_t>(), width,
                          d_x.mutable_data_ptr<scalar_t>() + first * width);
    });
  });
  return d_x;
}

}  // namespace

at::Tensor CpuBackend::sum_of_gathered(const std::vector<at::Tensor>& x,
                                       const std::vector<GatherView>& index,
                                       std::int64_t rows) const {
  at::Tensor y = rows_like(x[0], rows);
  const std::int64_t width = columns(y);
  for_row_blocks(pool_, rows, [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "sum_of_gathered", [&] {
      scalar_t* const out = y.mutable_data_ptr<scalar_t>() + first * width;
      for (std::size_t t = 0; t < x.size(); ++t) {
        const std::int32_t* const taken =
            index[t].is_identity() ? nullptr : index[t].index.data() + first;
        const scalar_t* const in = x[t].const_data_ptr<scalar_t>() + (taken ? 0 : first * width);
        if (t == 0) {
          copy_taken(in, taken, count, width, out);
        } else {
          add_taken(in, taken, count, width, out);
        }
      }
    });
  });
  return y;
}

at::Tensor CpuBackend::gathered_gradient(const Csr& transposed, const at::Tensor& d_y) const {
  return multiply(transposed, 1, d_y, pool_);
}

at::Tensor CpuBackend::aggregate(const SparseMatrix& matrix, const at::Tensor& x,
                                 Aggregation aggregation) const {
  if (aggregation == Aggregation::max) return largest(matrix, x, pool_);
  at::Tensor y = multiply(matrix.forward, matrix.replicas, x, pool_);
  if (aggregation == Aggregation::mean) divide(matrix, y, pool_);
  return y;
}

at::Tensor CpuBackend::aggregate_gradient(const SparseMatrix& matrix, const at::Tensor& x,
                                          const at::Tensor& y, const at::Tensor& d_y,
                                          Aggregation aggregation) const {
  if (aggregation == Aggregation::sum)
    return multiply(matrix.transposed, matrix.replicas, d_y, pool_);
  at::Tensor own = d_y.clone();
  if (aggregation == Aggregation::max) return largest_gradient(matrix, x, y, own, pool_);
  divide(matrix, own, pool_);
  return multiply(matrix.transposed, matrix.replicas, own, pool_);
}

}  // namespace tpudist
