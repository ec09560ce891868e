#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/operators/backend.hpp"

namespace tpudist {

// Calls body(m, count) for each plane of `x` [M, rows, C], which has `count` numbers one after
// another. A contiguous matrix is one plane.
template <typename Body>
void for_planes(const at::Tensor& x, const Body& body) {
  const std::int64_t planes = x.dim() == 3 ? x.size(0) : 1;
  for (std::int64_t m = 0; m < planes; ++m) body(m, x.numel() / planes);
}

}  // namespace tpudist
