#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/operators/backend.hpp"

namespace tpudist {

// Calls body(m, count) for each plane of `x` [M, rows, C], which has `count` numbers one after
// another.
template <typename Body>
void for_planes(const at::Tensor& x, const Body& body) {
  for (std::int64_t m = 0; m < x.size(0); ++m) body(m, x.size(1) * x.size(2));
}

}  // namespace tpudist
