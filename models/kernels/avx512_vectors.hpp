#pragma once

// Vectors of AVX-512 for avx512_gemm.cpp and bf16_gemm.cpp, which define TPUDIST_TILES first.

#include <immintrin.h>

#include "models/kernels/register_tiles.hpp"

namespace tpudist {
namespace {

inline __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}

// What all Dots of AVX-512 share: 24 sums, 4 vectors of b and 1 of a in registers.
struct Avx512Sums {
  static constexpr int kLanes = 16, kRows = 6, kVectors = 4;
  using Sum = __m512;
  TPUDIST_TILES static Sum get(const float* p, std::int64_t n) {
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
  }
  TPUDIST_TILES static void put(float* p, std::int64_t n, Sum sum) {
    _mm512_mask_storeu_ps(p, first_lanes(n), sum);
  }
  TPUDIST_TILES static Sum scaled(float beta, Sum before, Sum sum) {
    return _mm512_fmadd_ps(_mm512_set1_ps(beta), before, sum);
  }
};

// Transposes 16 x 16 by exchanging bit s of row and lane number, for each bit.
TPUDIST_TILES inline void turn(__m512i (&rows)[16]) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#pragma GCC unroll 4
  for (int s = 1; s < 16; s *= 2) {
    const __mmask16 set = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(s));
    const __m512i of_low = _mm512_mask_add_epi32(lane, set, lane, _mm512_set1_epi32(16 - s));
    const __m512i of_high = _mm512_add_epi32(of_low, _mm512_set1_epi32(s));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i & s) continue;
      const __m512i low = rows[i], high = rows[i + s];
      rows[i] = _mm512_permutex2var_epi32(low, of_low, high);
      rows[i + s] = _mm512_permutex2var_epi32(low, of_high, high);
    }
  }
}

}  // namespace
}  // namespace tpudist
