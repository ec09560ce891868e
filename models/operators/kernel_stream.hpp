#pragma once

#include <ATen/core/Tensor.h>

struct CUstream_st;

namespace tpudist {

// The current stream of the tensor's CUDA device; null for a tensor on the CPU.
CUstream_st* stream_of(const at::Tensor& x);

}  // namespace tpudist
