#include "models/kernels/gemm.hpp"

#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <utility>

#include "core/aligned.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/kernels/row_kernels.hpp"

// The BLAS inside LibTorch. Called directly, since a call through at::mm costs several
// microseconds; null if a LibTorch does not export its BLAS.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* a_stride,
                       const float* b, const int* b_stride, const float* beta, float* c,
                       const int* c_stride) __attribute__((weak));

namespace tpudist {
namespace {

// BLAS must run only in this thread (cpu_process.hpp). The flag makes the check cheap.
void require_one_thread() {
  thread_local bool done = false;
  if (done) return;
  use_one_thread_per_worker();
  done = true;
}

at::Tensor view(const MatrixView& matrix, std::int64_t rows, std::int64_t columns) {
  const bool swapped = matrix.transpose == Transpose::yes;
  const std::int64_t row_stride = swapped ? 1 : matrix.stride,
                     column_stride = swapped ? matrix.stride : 1;
  return at::from_blob(const_cast<float*>(matrix.data), {rows, columns},
                       {row_stride, column_stride}, at::kFloat);
}

void gemm_by_aten(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixView& a,
                  const MatrixView& b, float beta, float* c, std::int64_t c_stride) {
  at::Tensor out = at::from_blob(c, {m, n}, {c_stride, 1}, at::kFloat);
  if (beta == 0) {
    at::mm_out(out, view(a, m, k), view(b, k, n));
  } else {
    at::addmm_out(out, out, view(a, m, k), view(b, k, n), beta);
  }
}

// A copy of x [rows, columns] as it lies in memory, rounded.
MatrixView rounded(Precision precision, const MatrixView& x, std::int64_t rows,
                   std::int64_t columns, AlignedFloats& copy) {
  if (x.transpose == Transpose::yes) std::swap(rows, columns);
  const std::int64_t stride = std::max<std::int64_t>(pad16(columns), 16);  // BLAS does not accept 0
  if (static_cast<std::int64_t>(copy.size()) < rows * stride) copy = AlignedFloats(rows * stride);
  round_rows(precision, {x.data, x.stride}, rows, columns, {copy.data(), stride});
  return {copy.data(), stride, x.transpose};
}

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float beta,
          float* c, std::int64_t c_stride) {
  static const bool tiles = tiles_beat_blas();
  require_one_thread();
  if (m == 0 || n == 0) return;
  if (tiles) return gemm_of_tiles(m, n, k, a, b, beta, c, c_stride);
  gemm_of_blas(m, n, k, a, b, beta, c, c_stride);
}

void gemm_of_blas(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                  float beta, float* c, std::int64_t c_stride) {
  require_one_thread();
  if (m == 0 || n == 0) return;
  if (!sgemm_) return gemm_by_aten(m, n, k, a, b, beta, c, c_stride);
  // BLAS is column-major: it sees the transposes, so c' = b' a'.
  const auto letter = [](const MatrixView& x) { return x.transpose == Transpose::yes ? 'T' : 'N'; };
  const char left = letter(b), right = letter(a);
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), inner = static_cast<int>(k);
  const int b_stride = static_cast<int>(b.stride), a_stride = static_cast<int>(a.stride);
  const int out_stride = static_cast<int>(c_stride);
  const float one = 1;
  sgemm_(&left, &right, &rows, &columns, &inner, &one, b.data, &b_stride, a.data, &a_stride, &beta,
         c, &out_stride);
}

void gemm(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a,
          MatrixView b, float beta, float* c, std::int64_t c_stride) {
  static const bool pairs = has_bf16_dot_products();
  if (precision == Precision::fp32) {
    gemm(m, n, k, a, b, beta, c, c_stride);
  } else if (precision == Precision::bf16 && pairs) {
    gemm_of_pairs(m, n, k, a, b, beta, c, c_stride);
  } else {
    gemm_of_rounded(precision, m, n, k, a, b, beta, c, c_stride);
  }
}

void gemm_of_rounded(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k,
                     MatrixView a, MatrixView b, float beta, float* c, std::int64_t c_stride) {
  thread_local AlignedFloats left, right;
  gemm(m, n, k, rounded(precision, a, m, k, left), rounded(precision, b, k, n, right), beta, c,
       c_stride);
}

}  // namespace tpudist
