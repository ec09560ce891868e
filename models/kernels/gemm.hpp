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
// the kernel of models/kernels/fp32_gemm.hpp, whichever is faster on this CPU. With beta 0 it does
// not read c. The bits depend on the CPU, shapes, strides, contents and the alignment of the three
// addresses, so keep equal work equally aligned.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float beta,
          float* c, std::int64_t c_stride);
// The same, always with LibTorch's BLAS.
void gemm_of_blas(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                  float beta, float* c, std::int64_t c_stride);

// The same with operands of this precision: bf16 by the kernel of models/kernels/bf16_gemm.hpp where
// the CPU supports it, and else by gemm_of_rounded.
void gemm(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a,
          MatrixView b, float beta, float* c, std::int64_t c_stride);
// gemm() of copies of the operands that are rounded to tf32 or bf16, so slower than in float32.
// Infinities and NaNs propagate as in float32. Keeps some memory of the calling thread.
void gemm_of_rounded(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k,
                     MatrixView a, MatrixView b, float beta, float* c, std::int64_t c_stride);

}  // namespace tpudist
