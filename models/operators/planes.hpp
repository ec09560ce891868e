#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/operators/backend.hpp"

namespace tpudist {

// Calls body(m, count) for each plane of `x` [M, rows, C], which has `count` numbers one after
// another, if x is float32 on the CPU. A contiguous matrix is one plane. Otherwise returns false:
// functions of LibTorch serve, whose bits on a CPU depend on its vectors.
template <typename Body>
bool for_float_planes(const at::Tensor& x, const Body& body) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) return false;
  const std::int64_t planes = x.dim() == 3 ? x.size(0) : 1;
  for (std::int64_t m = 0; m < planes; ++m) body(m, x.numel() / planes);
  return true;
}

}  // namespace tpudist
