#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/aligned.hpp"
#include "core/error.hpp"
#include "models/bf16_gemm.hpp"

// The product from AVX-512's bf16 dot products, which multiply pairs: two neighbouring elements of
// a row of a with two of a column of b. Both operands are rounded into pairs for each block of k, b
// a panel of columns at a time, and tiles of c are summed up in registers.

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define TPUDIST_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace tpudist {
namespace {

using Pair = std::uint32_t;  // two bf16, the first in the lower half

constexpr int kTileRows = 6, kTileVectors = 4;  // 24 sums, 4 vectors of b and 1 of a in registers
constexpr std::int64_t kLanes = 16, kPanel = kLanes * kTileVectors;
constexpr std::int64_t kBlock = 512;  // of k: a panel of b stays in the caches

inline __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}

// Pairs of the first n <= 32 floats, zeros behind.
TPUDIST_PAIRS inline __m512i pairs_along(const float* x, std::int64_t n) {
  const __m512 low = _mm512_maskz_loadu_ps(first_lanes(n), x);
  const __m512 high = _mm512_maskz_loadu_ps(first_lanes(n - kLanes), x + kLanes);
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// Pairs (x[j], y[j]) of the first n <= 16 floats, zeros behind; no y: null.
TPUDIST_PAIRS inline __m512i pairs_across(const float* x, const float* y, std::int64_t n) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  // Elements j and 16 + j of the converted vector beside each other.
  const __m512i order = _mm512_or_si512(
      lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(kLanes)), 16));
  const __mmask16 mask = first_lanes(n);
  const __m512 low = _mm512_maskz_loadu_ps(mask, x);
  const __m512 high = y ? _mm512_maskz_loadu_ps(mask, y) : _mm512_setzero_ps();
  return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// Transposes 16 x 16: changes bit s of row and lane number, for each bit.
TPUDIST_PAIRS inline void turn(__m512i (&rows)[kLanes]) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#pragma GCC unroll 4
  for (int s = 1; s < kLanes; s *= 2) {
    const __mmask16 set = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(s));
    const __m512i of_low =
        _mm512_mask_add_epi32(lane, set, lane, _mm512_set1_epi32(static_cast<int>(kLanes) - s));
    const __m512i of_high = _mm512_add_epi32(of_low, _mm512_set1_epi32(s));
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (i & s) continue;
      const __m512i low = rows[i], high = rows[i + s];
      rows[i] = _mm512_permutex2var_epi32(low, of_low, high);
      rows[i + s] = _mm512_permutex2var_epi32(low, of_high, high);
    }
  }
}

// Pairs of an operand: pair l of row (or column) i at data[i * stride + l * pair_stride].
struct Pairs {
  const Pair* data;
  std::int64_t stride, pair_stride;
};

// Packs x [count, k] whose rows lie along k.
TPUDIST_PAIRS Pairs pack_rows(const MatrixView& x, std::int64_t count, std::int64_t k, Pair* out) {
  const std::int64_t stride = pad16((k + 1) / 2);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t l = 0; l < k; l += 2 * kLanes) {
      _mm512_storeu_si512(out + i * stride + l / 2, pairs_along(x.data + i * x.stride + l, k - l));
    }
  }
  return {out, stride, 1};
}

// Packs x [k, count] whose rows lie across k, `pair_stride` columns to a pair.
TPUDIST_PAIRS Pairs pack_columns(const MatrixView& x, std::int64_t count, std::int64_t k, Pair* out,
                                 std::int64_t pair_stride) {
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

// Packs x [count, k] whose rows lie along k as if they lay across.
TPUDIST_PAIRS void pack_turned(const MatrixView& x, std::int64_t count, std::int64_t k, Pair* out,
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

// c [R, 16 V] = a b + beta * c over `pairs` of k; `last` masks the last vector of columns.
template <int R, int V>
TPUDIST_PAIRS void multiply_tile(std::int64_t pairs, Pairs a, const Pair* b, float beta, float* c,
                                 std::int64_t c_stride, __mmask16 last) {
  __m512 sums[R][V];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  for (std::int64_t l = 0; l < pairs; ++l) {
    __m512i of_b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) of_b[v] = _mm512_loadu_si512(b + l * kPanel + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const auto pair = static_cast<int>(a.data[r * a.stride + l * a.pair_stride]);
      const auto of_a = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], of_a, (__m512bh)of_b[v]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const __mmask16 mask = v + 1 == V ? last : 0xffff;
      float* const place = c + r * c_stride + v * kLanes;
      __m512 sum = sums[r][v];
      if (beta != 0) {
        sum = _mm512_fmadd_ps(_mm512_set1_ps(beta), _mm512_maskz_loadu_ps(mask, place), sum);
      }
      _mm512_mask_storeu_ps(place, mask, sum);
    }
  }
}

using MultiplyTile = decltype(&multiply_tile<1, 1>);

template <int... I>
constexpr std::array<MultiplyTile, sizeof...(I)> all_tiles(std::integer_sequence<int, I...>) {
  return {multiply_tile<I / kTileVectors + 1, I % kTileVectors + 1>...};
}

constexpr auto kTiles = all_tiles(std::make_integer_sequence<int, kTileRows * kTileVectors>());

Pair* scratch(int slot, std::int64_t pairs) {
  thread_local std::vector<Pair, AlignedAllocator<Pair>> memory[2];
  if (static_cast<std::int64_t>(memory[slot].size()) < pairs) memory[slot].resize(pairs);
  return memory[slot].data();
}

// The view without its first `row` rows and `column` columns.
MatrixView from(const MatrixView& x, std::int64_t row, std::int64_t column) {
  if (x.transpose == Transpose::yes) std::swap(row, column);
  return {x.data + row * x.stride + column, x.stride, x.transpose};
}

void multiply_block(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixView& a,
                    const MatrixView& b, float beta, float* c, std::int64_t c_stride) {
  const std::int64_t pairs = (k + 1) / 2;
  const bool across = a.transpose == Transpose::yes;
  Pair* const memory = scratch(0, across ? pairs * pad16(m) : m * pad16(pairs));
  const Pairs left = across ? pack_columns(a, m, k, memory, pad16(m)) : pack_rows(a, m, k, memory);
  Pair* const panel = scratch(1, pairs * kPanel);
  for (std::int64_t j = 0; j < n; j += kPanel) {
    const std::int64_t columns = std::min(kPanel, n - j), vectors = pad16(columns) / kLanes;
    if (b.transpose == Transpose::yes) {
      pack_turned(from(b, 0, j), columns, k, panel, kPanel);
    } else {
      pack_columns(from(b, 0, j), columns, k, panel, kPanel);
    }
    const __mmask16 last = first_lanes(columns - (vectors - 1) * kLanes);
    for (std::int64_t i = 0; i < m; i += kTileRows) {
      const std::int64_t rows = std::min<std::int64_t>(kTileRows, m - i);
      const Pairs strip{left.data + i * left.stride, left.stride, left.pair_stride};
      kTiles[(rows - 1) * kTileVectors + vectors - 1](pairs, strip, panel, beta,
                                                      c + i * c_stride + j, c_stride, last);
    }
  }
}

}  // namespace

bool has_bf16_dot_products() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

void gemm_of_pairs(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride) {
  std::int64_t begin = 0;
  do {  // also where k is 0
    multiply_block(m, n, std::min(kBlock, k - begin), from(a, 0, begin), from(b, begin, 0),
                   begin ? 1 : beta, c, c_stride);
    begin += kBlock;
  } while (begin < k);
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
