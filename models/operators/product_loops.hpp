#pragma once

#include <cstdint>

// Loops of row_products for one row, vectorised for float32 and plain for double. A product of
// `heads` is [heads, a, b] numbers.

namespace tpudist {

template <typename T>
struct ProductLoops {
  // s += weight * x y^T: x is [heads, a], y [heads, b]
  static void add(const T* x, const T* y, T weight, std::int64_t heads, std::int64_t a,
                  std::int64_t b, T* s);
  // y += weight * x^T s: x is [heads, a], y [heads, b]
  static void apply(const T* x, const T* s, T weight, std::int64_t heads, std::int64_t a,
                    std::int64_t b, T* y);
};

}  // namespace tpudist
