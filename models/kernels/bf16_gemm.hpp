#pragma once

#include <cstdint>

#include "models/kernels/gemm.hpp"

namespace tpudist {

// Both functions compute c[m, n] = a[m, k] b[k, n] + beta * c with a and b rounded to bf16 and sums
// in float32. They use only the calling thread, which keeps some scratch memory. With beta 0 they
// do not read c. Infinities and NaNs propagate as in float32.

// This one uses the CPU's bf16 dot products and is about twice as fast as a float32 product. The
// bits depend only on shapes and contents. Call it only if has_bf16_dot_products(); otherwise it
// throws Error or the CPU stops the program.
void gemm_of_pairs(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride);
bool has_bf16_dot_products();

// This one runs on any CPU: it rounds copies of the operands and multiplies in float32, so it is
// slower than a float32 product.
void gemm_of_rounded(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                     float beta, float* c, std::int64_t c_stride);

}  // namespace tpudist
