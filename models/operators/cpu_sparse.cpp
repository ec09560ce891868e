#include <ATen/ATen.h>

#include "models/kernels/cpu_blocks.hpp"
#include "models/kernels/row_kernels.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/typed_rows.hpp"

namespace tpudist {
namespace {

// Runs body(m, first, count) for the blocks of rows of every member.
template <typename Body>
void for_member_blocks(ThreadPool& pool, const at::Tensor& x, const Body& body) {
  for_row_blocks(pool, x.size(1), [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t m = 0; m < x.size(0); ++m) body(m, first, count);
  });
}

// The product of a matrix with dense rows.
at::Tensor multiply(const Csr& matrix, std::int64_t replicas, const at::Tensor& x,
                    ThreadPool& pool) {
  at::Tensor y = rows_like(x, matrix.rows() * replicas);
  const std::int64_t width = x.size(2);
  for_member_blocks(pool, y, [&](std::int64_t m, std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "multiply", [&] {
      add_entries(matrix, replicas, first, count, plane<scalar_t>(x, m), width,
                  mutable_plane<scalar_t>(y, m) + first * width);
    });
  });
  return y;
}

// Divides each row by the number of its neighbours.
void divide(const SparseMatrix& matrix, at::Tensor& y, ThreadPool& pool) {
  const std::int64_t width = y.size(2);
  for_member_blocks(pool, y, [&](std::int64_t m, std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "divide", [&] {
      divide_by_totals(matrix.forward, matrix.replicas, first, count, width,
                       mutable_plane<scalar_t>(y, m) + first * width);
    });
  });
}

at::Tensor largest(const SparseMatrix& matrix, const at::Tensor& x, ThreadPool& pool) {
  at::Tensor best = rows_like(x, matrix.forward.rows() * matrix.replicas);
  const std::int64_t width = x.size(2);
  for_member_blocks(pool, best, [&](std::int64_t m, std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "largest", [&] {
      segment_max(matrix.forward, matrix.replicas, first, count, plane<scalar_t>(x, m), width,
                  mutable_plane<scalar_t>(best, m) + first * width);
    });
  });
  return best;
}

// `share`: the gradient of `best`. It is overwritten.
at::Tensor largest_gradient(const SparseMatrix& matrix, const at::Tensor& x, const at::Tensor& best,
                            const at::Tensor& share, ThreadPool& pool) {
  const std::int64_t width = x.size(2);
  at::Tensor d_x = rows_like(x);
  for_member_blocks(pool, share, [&](std::int64_t m, std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "shares", [&] {
      share_of_largest(matrix.forward, matrix.replicas, first, count, plane<scalar_t>(x, m),
                       plane<scalar_t>(best, m) + first * width, width,
                       mutable_plane<scalar_t>(share, m) + first * width);
    });
  });
  for_member_blocks(pool, x, [&](std::int64_t m, std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "segment_max_backward", [&] {
      gradient_of_largest(matrix.transposed, matrix.replicas, first, count,
                          plane<scalar_t>(x, m) + first * width, plane<scalar_t>(best, m),
                          plane<scalar_t>(share, m), width,
                          mutable_plane<scalar_t>(d_x, m) + first * width);
    });
  });
  return d_x;
}

}  // namespace

at::Tensor CpuBackend::sum_of_gathered(const std::vector<at::Tensor>& x,
                                       const std::vector<GatherView>& index,
                                       std::int64_t rows) const {
  at::Tensor y = rows_like(x[0], rows);
  const std::int64_t width = y.size(2);
  for_member_blocks(pool_, y, [&](std::int64_t m, std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "sum_of_gathered", [&] {
      scalar_t* const out = mutable_plane<scalar_t>(y, m) + first * width;
      for (std::size_t t = 0; t < x.size(); ++t) {
        const std::int32_t* const taken =
            index[t].is_identity() ? nullptr : index[t].index.data() + first;
        const scalar_t* const in = plane<scalar_t>(x[t], m) + (taken ? 0 : first * width);
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
  at::Tensor own = rows_like(d_y).copy_(d_y);
  if (aggregation == Aggregation::max) return largest_gradient(matrix, x, y, own, pool_);
  divide(matrix, own, pool_);
  return multiply(matrix.transposed, matrix.replicas, own, pool_);
}

}  // namespace tpudist
