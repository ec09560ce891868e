#include "models/kernels/fp32_gemm.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>

#define TPUDIST_AVX2 __attribute__((target("avx2,fma")))

namespace tpudist {
namespace {

// 12 sums, 2 vectors of b and 1 of a in registers. A panel of b [kBlock, kPanel] stays in the first
// cache level.
constexpr std::int64_t kTileRows = 6, kLanes = 8, kPanel = 2 * kLanes, kBlock = 256;

// c [R, kPanel] = a b + beta * c over `depth` elements of a; element l of row r of a is at
// a[r * stride + l * step].
template <int R>
TPUDIST_AVX2 void multiply_tile(std::int64_t depth, const float* a, std::int64_t stride,
                                std::int64_t step, const float* b, float beta, float* c,
                                std::int64_t c_stride) {
  __m256 sums[R][2];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    sums[r][0] = sums[r][1] = _mm256_setzero_ps();
    __builtin_prefetch(c + r * c_stride, 1);  // c is loaded while the sums are computed
  }
  for (std::int64_t l = 0; l < depth; ++l) {
    const __m256 left = _mm256_loadu_ps(b + l * kPanel),
                 right = _mm256_loadu_ps(b + l * kPanel + kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const __m256 of_a = _mm256_broadcast_ss(a + r * stride + l * step);
      sums[r][0] = _mm256_fmadd_ps(of_a, left, sums[r][0]);
      sums[r][1] = _mm256_fmadd_ps(of_a, right, sums[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float* const place = c + r * c_stride + v * kLanes;
      const __m256 before = beta == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(place);
      _mm256_storeu_ps(place, _mm256_fmadd_ps(_mm256_set1_ps(beta), before, sums[r][v]));
    }
  }
}

constexpr std::array kTiles{multiply_tile<1>, multiply_tile<2>, multiply_tile<3>,
                            multiply_tile<4>, multiply_tile<5>, multiply_tile<6>};

// Packs `columns` columns of b [depth, ..] from column `first` and row `begin` on, with zeros after
// them.
void pack(const MatrixView& b, std::int64_t begin, std::int64_t depth, std::int64_t first,
          std::int64_t columns, float* panel) {
  const bool turned = b.transpose == Transpose::yes;
  const std::int64_t down = turned ? 1 : b.stride, along = turned ? b.stride : 1;
  const float* const corner = b.data + begin * down + first * along;
  for (std::int64_t l = 0; l < depth; ++l, panel += kPanel) {
    for (std::int64_t j = 0; j < columns; ++j) panel[j] = corner[l * down + j * along];
    std::fill(panel + columns, panel + kPanel, 0.0f);
  }
}

}  // namespace

void gemm_of_avx2(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                  float beta, float* c, std::int64_t c_stride) {
  alignas(64) float panel[kBlock * kPanel], part[kTileRows * kPanel];
  const bool across = a.transpose == Transpose::yes;
  const std::int64_t stride = across ? 1 : a.stride, step = across ? a.stride : 1;
  std::int64_t begin = 0;
  do {
    const std::int64_t depth = std::min(kBlock, k - begin);
    for (std::int64_t j = 0; j < n; j += kPanel) {
      const std::int64_t columns = std::min(kPanel, n - j);
      pack(b, begin, depth, j, columns, panel);
      for (std::int64_t i = 0; i < m; i += kTileRows) {
        const std::int64_t rows = std::min(kTileRows, m - i);
        const auto tile = kTiles[rows - 1];
        const float* const left = a.data + i * stride + begin * step;
        float* const place = c + i * c_stride + j;
        if (columns == kPanel) {
          tile(depth, left, stride, step, panel, beta, place, c_stride);
          continue;
        }
        tile(depth, left, stride, step, panel, 0, part, kPanel);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t v = 0; v < columns; ++v) {
            float& to = place[r * c_stride + v];
            to = beta == 0 ? part[r * kPanel + v] : beta * to + part[r * kPanel + v];
          }
        }
      }
    }
    beta = 1;
    begin += kBlock;
  } while (begin < k);
}

}  // namespace tpudist

#endif
