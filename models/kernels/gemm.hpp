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

// Computes c[m, n] = a[m, k] b[k, n] + beta * c in the calling thread only, which keeps some scratch
// memory. With beta 0 it does not read c. Each element is a sum over blocks of 256 elements of k, in
// order; a block's sum is a chain of fused multiply-adds from 0 on. So the bits of an element depend
// only on its row of a, its column of b and c, on every CPU (test: gemm_test).
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float beta,
          float* c, std::int64_t c_stride);
// The versions that gemm() chooses from: the widest that the CPU has and TPUDIST_CPU allows. Call a
// version only if the CPU has it.
void gemm_by_avx512(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                    float beta, float* c, std::int64_t c_stride);
void gemm_by_avx2(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                  float beta, float* c, std::int64_t c_stride);
void gemm_plain(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                float beta, float* c, std::int64_t c_stride);
bool has_avx512_products();
bool has_avx2_products();

// The same with operands of this precision: bf16 by gemm_of_pairs if the CPU supports it, otherwise
// by gemm_of_rounded.
void gemm(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a,
          MatrixView b, float beta, float* c, std::int64_t c_stride);
// gemm() of operands copied and rounded to tf32 or bf16, so slower than in float32.
// Infinities and NaNs propagate as in float32. Keeps some memory of the calling thread.
void gemm_of_rounded(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k,
                     MatrixView a, MatrixView b, float beta, float* c, std::int64_t c_stride);

// Computes c[m, n] = a[m, k] b[k, n] + beta * c with a and b rounded to bf16 and sums in float32,
// by the CPU's bf16 dot products: about twice as fast as a float32 product. Uses only the calling
// thread, which keeps some scratch memory. With beta 0 it does not read c. Infinities and NaNs
// propagate as in float32. The bits depend only on shapes and contents. Call it only if
// has_bf16_dot_products(); otherwise it throws Error or the CPU stops the program.
void gemm_of_pairs(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride);
bool has_bf16_dot_products();

}  // namespace tpudist
