#pragma once

#include <cstdint>

#include "models/kernels/gemm.hpp"

namespace tpudist {

// Computes c[m, n] = a[m, k] b[k, n] + beta * c with a and b rounded to bf16 and sums in float32, by
// the CPU's bf16 dot products: about twice as fast as a float32 product. Uses only the calling
// thread, which keeps some scratch memory. With beta 0 it does not read c. Infinities and NaNs
// propagate as in float32. The bits depend only on shapes and contents. Call it only if
// has_bf16_dot_products(); otherwise it throws Error or the CPU stops the program.
void gemm_of_pairs(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride);
bool has_bf16_dot_products();

}  // namespace tpudist
