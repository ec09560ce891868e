#include "models/kernels/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/aligned.hpp"
#include "models/kernels/row_kernels.hpp"

#define TPUDIST_TILES
#include "models/kernels/register_tiles.hpp"

namespace tpudist {
namespace {

using Gemm = void(std::int64_t, std::int64_t, std::int64_t, MatrixView, MatrixView, float, float*,
                  std::int64_t);

// The arithmetic of the other Dots, one number at a time.
struct PlainDot {
  static constexpr int kLanes = 8, kRows = 1, kVectors = 1;
  using Element = float;
  using Vector = std::array<float, kLanes>;
  using Sum = Vector;
  static Vector load(const float* x) { return get(x, kLanes); }
  static float broadcast(float x) { return x; }
  static Sum add(Sum sum, float a, const Vector& b) {
    for (int i = 0; i < kLanes; ++i) sum[i] = std::fma(a, b[i], sum[i]);
    return sum;
  }
  static Sum get(const float* p, std::int64_t n) {
    Sum sum{};
    std::copy_n(p, std::min<std::int64_t>(n, kLanes), sum.begin());
    return sum;
  }
  static void put(float* p, std::int64_t n, const Sum& sum) {
    std::copy_n(sum.begin(), std::min<std::int64_t>(n, kLanes), p);
  }
  static Sum scaled(float beta, const Sum& before, Sum sum) { return add(sum, beta, before); }
  static void pack(const MatrixView& b, std::int64_t count, std::int64_t k, float* panels) {
    const bool turned = b.transpose == Transpose::yes;
    const std::int64_t down = turned ? 1 : b.stride, along = turned ? b.stride : 1;
    for (std::int64_t j = 0; j < pad16(count); ++j) {
      float* const column = panels + j / kLanes * kLanes * k + j % kLanes;
      for (std::int64_t l = 0; l < k; ++l)
        column[l * kLanes] = j < count ? b.data[l * down + j * along] : 0;
    }
  }
};

Gemm* chosen() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (has_avx512_products()) return gemm_by_avx512;
  if (has_avx2_products()) return gemm_by_avx2;
#endif
  return gemm_plain;
}

// A copy of x [rows, columns] as it lies in memory, rounded.
MatrixView rounded(Precision precision, const MatrixView& x, std::int64_t rows,
                   std::int64_t columns, AlignedFloats& copy) {
  if (x.transpose == Transpose::yes) std::swap(rows, columns);
  const std::int64_t stride = pad16(columns);
  if (static_cast<std::int64_t>(copy.size()) < rows * stride) copy = AlignedFloats(rows * stride);
  round_rows(precision, {x.data, x.stride}, rows, columns, {copy.data(), stride});
  return {copy.data(), stride, x.transpose};
}

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float beta,
          float* c, std::int64_t c_stride) {
  static Gemm* const widest = chosen();
  widest(m, n, k, a, b, beta, c, c_stride);
}

void gemm_plain(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                float beta, float* c, std::int64_t c_stride) {
  multiply_floats<PlainDot>(m, n, k, a, b, beta, c, c_stride);
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
