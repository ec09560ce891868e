#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

struct CUstream_st;

namespace tpudist {

// The current stream of the tensor's CUDA device; null for a tensor on the CPU.
CUstream_st* stream_of(const at::Tensor& x);

// Number of members times number of channels of rows [rows, M, C].
inline std::int64_t columns(const at::Tensor& x) {
  return x.size(1) * x.size(2);
}

}  // namespace tpudist
