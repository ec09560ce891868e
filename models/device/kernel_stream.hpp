#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/aggregate.hpp"

namespace tpudist {

// The current stream of the tensor's CUDA device; null for a tensor on the CPU.
CUstream_st* stream_of(const at::Tensor& x);

// A tensor [M, ...] of T, whose planes are dense, as kernels take it; null if it is undefined.
template <typename T>
Planes<const T> planes_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {x.const_data_ptr<T>(), x.stride(0)};
}
template <typename T>
Planes<T> mutable_planes_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {x.mutable_data_ptr<T>(), x.stride(0)};
}
// The columns of rows [M, rows, C].
inline Columns columns_of(const at::Tensor& x, std::int64_t replicas = 1) {
  return {replicas * x.size(2), x.size(0)};
}

// The `parts` of a launch over the matrix on rows like those of `x`, in the type of sums; undefined
// where no row of the matrix is long.
at::Tensor parts_of(const CsrPointers& matrix, const at::Tensor& x, at::ScalarType type,
                    std::int64_t replicas = 1);

// The sum of all rows of each member, [M, C] of x [M, rows, C] with dense planes.
at::Tensor summed_rows(const at::Tensor& x);

}  // namespace tpudist
