#pragma once

#include <cstdint>

#include "models/kernels/precision.hpp"

namespace tpudist {

enum class Transpose { no, yes };

// A row-major float32 operand of a product: element (i, j) is at data[i * stride + j]. With
// Transpose::yes the product uses the transpose of this matrix.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t stride = 0;
  Transpose transpose = Transpose::no;
};

// Computes c[m, n] = a[m, k] b[k, n] + beta * c in the calling thread only. Uses LibTorch's BLAS or
// gemm_of_tiles, whichever is faster on this CPU. With beta 0 it does not read c. The bits depend
// on the CPU, shapes, strides, contents and the alignment of the three addresses, so keep equal
// work equally aligned.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float beta,
          float* c, std::int64_t c_stride);
// The same, always with LibTorch's BLAS.
void gemm_of_blas(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                  float beta, float* c, std::int64_t c_stride);

// The same with operands of this precision: bf16 by gemm_of_pairs if the CPU supports it, otherwise
// by gemm_of_rounded.
void gemm(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a,
          MatrixView b, float beta, float* c, std::int64_t c_stride);
// gemm() of operands copied and rounded to tf32 or bf16, so slower than in float32.
// Infinities and NaNs propagate as in float32. Keeps some memory of the calling thread.
void gemm_of_rounded(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k,
                     MatrixView a, MatrixView b, float beta, float* c, std::int64_t c_stride);

// Computes c[m, n] = a[m, k] b[k, n] + beta * c with AVX-512, in the calling thread only, which
// keeps some scratch memory. With beta 0 it does not read c. The bits depend only on shapes and
// contents, and those of a row do not depend on the other rows. Call it only if has_float_tiles().
void gemm_of_tiles(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride);
bool has_float_tiles();

// Whether gemm_of_tiles is faster than LibTorch's BLAS on this CPU: Intel's MKL uses AVX-512 only
// on Intel's processors (bench/README.md).
bool tiles_beat_blas();

// Computes c[m, n] = a[m, k] b[k, n] + beta * c with a and b rounded to bf16 and sums in float32,
// by the CPU's bf16 dot products: about twice as fast as a float32 product. Uses only the calling
// thread, which keeps some scratch memory. With beta 0 it does not read c. Infinities and NaNs
// propagate as in float32. The bits depend only on shapes and contents. Call it only if
// has_bf16_dot_products(); otherwise it throws Error or the CPU stops the program.
void gemm_of_pairs(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride);
bool has_bf16_dot_products();

}  // namespace tpudist
