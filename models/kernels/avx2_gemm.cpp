#include "models/kernels/gemm.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define TPUDIST_TILES __attribute__((target("avx2,fma")))
#include <immintrin.h>

#include "models/kernels/register_tiles.hpp"

namespace tpudist {
namespace {

TPUDIST_TILES inline __m256i first_lanes(std::int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}

// Transposes 8 x 8.
TPUDIST_TILES inline void turn(__m256 (&x)[8]) {
  __m256 y[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
    x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
    x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
    x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 low = x[i], high = x[i + 4];
    x[i] = _mm256_permute2f128_ps(low, high, 0x20);
    x[i + 4] = _mm256_permute2f128_ps(low, high, 0x31);
  }
}

// 12 sums, 2 vectors of b and 1 of a in registers.
struct Avx2Dot {
  static constexpr int kLanes = 8, kRows = 6, kVectors = 2;
  using Element = float;
  using Vector = __m256;
  using Sum = __m256;
  TPUDIST_TILES static Vector load(const float* x) { return _mm256_loadu_ps(x); }
  TPUDIST_TILES static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  TPUDIST_TILES static Sum add(Sum sum, Vector a, Vector b) { return _mm256_fmadd_ps(a, b, sum); }
  TPUDIST_TILES static Sum get(const float* p, std::int64_t n) {
    return n >= kLanes ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(n));
  }
  TPUDIST_TILES static void put(float* p, std::int64_t n, Sum sum) {
    if (n >= kLanes) {
      _mm256_storeu_ps(p, sum);
    } else {
      _mm256_maskstore_ps(p, first_lanes(n), sum);
    }
  }
  TPUDIST_TILES static Sum scaled(float beta, Sum before, Sum sum) {
    return _mm256_fmadd_ps(_mm256_set1_ps(beta), before, sum);
  }

  TPUDIST_TILES static void pack(const MatrixView& b, std::int64_t count, std::int64_t k,
                                 float* panels) {
    constexpr std::int64_t kWidth = kPanel<Avx2Dot>;
    static_assert(kWidth == 2 * kLanes);
    if (b.transpose == Transpose::no) {
      constexpr std::int64_t kAhead = 16;  // rows
      for (std::int64_t l = 0; l < k; ++l) {
        const float* const row = b.data + l * b.stride;
        for (std::int64_t j = 0; j < count; j += kWidth) {
          __builtin_prefetch(row + kAhead * b.stride + j);
          float* const to = panels + j * k + l * kWidth;
          _mm256_storeu_ps(to, get(row + j, count - j));
          if (const std::int64_t more = count - j - kLanes; more > 0)
            _mm256_storeu_ps(to + kLanes, get(row + j + kLanes, more));
        }
      }
      return;
    }
    for (std::int64_t j = 0; j < count; j += kLanes) {
      float* const to = panels + j / kWidth * kWidth * k + j % kWidth;
      const std::int64_t columns = std::min<std::int64_t>(kLanes, count - j);
      for (std::int64_t l = 0; l < k; l += kLanes) {
        const std::int64_t elements = std::min<std::int64_t>(kLanes, k - l);
        __m256 tile[kLanes];
#pragma GCC unroll 8
        for (int i = 0; i < kLanes; ++i)
          tile[i] = i < columns ? get(b.data + (j + i) * b.stride + l, elements) : Sum{};
        turn(tile);
#pragma GCC unroll 8
        for (int i = 0; i < kLanes; ++i) {
          if (i < elements) _mm256_storeu_ps(to + (l + i) * kWidth, tile[i]);
        }
      }
    }
  }
};

}  // namespace

bool has_avx2_products() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

void gemm_by_avx2(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                  float beta, float* c, std::int64_t c_stride) {
  multiply_floats<Avx2Dot>(m, n, k, a, b, beta, c, c_stride);
}

}  // namespace tpudist
#endif
