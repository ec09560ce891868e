#include "models/kernels/gemm.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/aligned.hpp"
#include "core/error.hpp"

// The product by AVX-512's bf16 dot products, which multiply pairs: two neighbouring elements of a
// row of a with two of a column of b. For each block of k both operands are rounded into pairs, b
// one panel of columns at a time, and tiles of c are summed in registers.

#if defined(__x86_64__) && defined(__GNUC__)
#define TPUDIST_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#include "models/kernels/avx512_vectors.hpp"

namespace tpudist {
namespace {

using Pair = std::uint32_t;  // two bf16, the first in the lower half

constexpr std::int64_t kLanes = Avx512Sums::kLanes, kPanelPairs = kLanes * Avx512Sums::kVectors;
constexpr std::int64_t kBlock = 512;  // of k: a panel of b stays in the caches

// Pairs of the first n <= 32 floats, followed by zeros.
TPUDIST_TILES inline __m512i pairs_along(const float* x, std::int64_t n) {
  const __m512 low = _mm512_maskz_loadu_ps(first_lanes(n), x);
  const __m512 high = _mm512_maskz_loadu_ps(first_lanes(n - kLanes), x + kLanes);
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// Pairs (x[j], y[j]) of the first n <= 16 floats, followed by zeros; no y: null.
TPUDIST_TILES inline __m512i pairs_across(const float* x, const float* y, std::int64_t n) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  // Puts elements j and 16 + j of the converted vector next to each other.
  const __m512i order = _mm512_or_si512(
      lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(kLanes)), 16));
  const __mmask16 mask = first_lanes(n);
  const __m512 low = _mm512_maskz_loadu_ps(mask, x);
  const __m512 high = y ? _mm512_maskz_loadu_ps(mask, y) : _mm512_setzero_ps();
  return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

struct PairDot : Avx512Sums {
  using Element = Pair;
  using Vector = __m512i;
  TPUDIST_TILES static Vector load(const Pair* pairs) { return _mm512_loadu_si512(pairs); }
  TPUDIST_TILES static Vector broadcast(Pair pair) {
    return _mm512_set1_epi32(static_cast<int>(pair));
  }
  TPUDIST_TILES static Sum add(Sum sum, Vector a, Vector b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};

// Packs x [count, k] whose rows lie along k.
TPUDIST_TILES Strip<Pair> pack_rows(const MatrixView& x, std::int64_t count, std::int64_t k,
                                    Pair* out) {
  const std::int64_t stride = pad16((k + 1) / 2);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t l = 0; l < k; l += 2 * kLanes) {
      _mm512_storeu_si512(out + i * stride + l / 2, pairs_along(x.data + i * x.stride + l, k - l));
    }
  }
  return {out, stride, 1};
}

// Packs x [k, count] whose rows lie across k, `pair_stride` columns to a pair.
TPUDIST_TILES Strip<Pair> pack_columns(const MatrixView& x, std::int64_t count, std::int64_t k,
                                       Pair* out, std::int64_t pair_stride) {
  for (std::int64_t l = 0; l < k; l += 2) {
    const float* const row = x.data + l * x.stride;
    const float* const next = l + 1 < k ? row + x.stride : nullptr;
    for (std::int64_t j = 0; j < count; j += kLanes) {
      _mm512_storeu_si512(out + l / 2 * pair_stride + j,
                          pairs_across(row + j, next ? next + j : nullptr, count - j));
    }
  }
  return {out, 1, pair_stride};
}

// Packs x [count, k] whose rows lie along k as if they lay across k.
TPUDIST_TILES void pack_turned(const MatrixView& x, std::int64_t count, std::int64_t k, Pair* out,
                               std::int64_t pair_stride) {
  for (std::int64_t j = 0; j < count; j += kLanes) {
    const std::int64_t rows = std::min(kLanes, count - j);
    for (std::int64_t l = 0; l < k; l += 2 * kLanes) {
      __m512i tile[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        tile[i] =
            i < rows ? pairs_along(x.data + (j + i) * x.stride + l, k - l) : _mm512_setzero_si512();
      }
      turn(tile);
      const std::int64_t pairs = std::min(kLanes, (k - l + 1) / 2);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (i < pairs) _mm512_storeu_si512(out + (l / 2 + i) * pair_stride + j, tile[i]);
      }
    }
  }
}

void multiply_block(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixView& a,
                    const MatrixView& b, float beta, float* c, std::int64_t c_stride) {
  const std::int64_t pairs = (k + 1) / 2;
  const bool across = a.transpose == Transpose::yes;
  Pair* const memory = scratch<Pair>(0, across ? pairs * pad16(m) : m * pad16(pairs));
  const Strip<Pair> left =
      across ? pack_columns(a, m, k, memory, pad16(m)) : pack_rows(a, m, k, memory);
  Pair* const panel = scratch<Pair>(1, pairs * kPanelPairs);
  const auto strip = [&](std::int64_t i) {
    return Strip<Pair>{left.data + i * left.stride, left.stride, left.step};
  };
  const auto pack = [&](std::int64_t j, std::int64_t columns) {
    if (b.transpose == Transpose::yes) {
      pack_turned(from(b, 0, j), columns, k, panel, kPanelPairs);
    } else {
      pack_columns(from(b, 0, j), columns, k, panel, kPanelPairs);
    }
    return Panel<Pair>{panel, kPanelPairs};
  };
  multiply_panels<PairDot>(m, n, pairs, strip, beta, c, c_stride, pack);
}

}  // namespace

bool has_bf16_dot_products() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

void gemm_of_pairs(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride) {
  multiply_in_blocks(
      k, kBlock, a, b, beta,
      [&](std::int64_t depth, const MatrixView& of_a, const MatrixView& of_b, float scale) {
        multiply_block(m, n, depth, of_a, of_b, scale, c, c_stride);
      });
}

}  // namespace tpudist

#else

namespace tpudist {

bool has_bf16_dot_products() {
  return false;
}

void gemm_of_pairs(std::int64_t, std::int64_t, std::int64_t, MatrixView, MatrixView, float, float*,
                   std::int64_t) {
  throw Error(ErrorKind::failed, "gemm_of_pairs: built for a CPU without bf16 dot products");
}

}  // namespace tpudist

#endif
