#pragma once

#include <cstdint>

#include "models/kernels/gemm.hpp"

namespace tpudist {

// Computes c[m, n] = a[m, k] b[k, n] + beta * c with AVX-512, in the calling thread only, which
// keeps some scratch memory. With beta 0 it does not read c. The bits depend only on shapes and
// contents, and those of a row do not depend on the other rows. Call it only if has_float_tiles().
void gemm_of_tiles(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride);
bool has_float_tiles();

// Whether gemm_of_tiles is faster than LibTorch's BLAS on this CPU: Intel's MKL uses AVX-512 only
// on Intel's processors (bench/README.md).
bool tiles_beat_blas();

}  // namespace tpudist
