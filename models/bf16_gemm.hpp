#pragma once

#include <cstdint>

#include "models/gemm.hpp"

namespace tpudist {

// c[m, n] = a[m, k] b[k, n] + beta * c with a and b rounded to bf16 and float32 sums, in the
// calling thread only, which keeps some scratch memory. beta 0 does not read c. Infinities and NaNs
// come out as in float32.

// With the CPU's bf16 dot products, about twice as fast as a float32 product. The bits are a
// function of shapes and contents alone. Only where has_bf16_dot_products().
void gemm_of_pairs(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride);
bool has_bf16_dot_products();

// On any CPU: rounds copies of the operands, then multiplies as in float32, and takes longer than
// that.
void gemm_of_rounded(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                     float beta, float* c, std::int64_t c_stride);

}  // namespace tpudist
