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
  return {x.mutable_data_ptr<T>(), x.stride(0)};
}
// The columns of rows [M, rows, C].
inline Columns columns_of(const at::Tensor& x, std::int64_t replicas = 1) {
  return {replicas * x.size(2), x.size(0)};
}

}  // namespace tpudist
