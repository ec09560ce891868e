#include "models/kernels/gemm.hpp"

#include "core/error.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define TPUDIST_TILES __attribute__((target("avx512f")))
#include "models/kernels/register_tiles.hpp"

namespace tpudist {
namespace {

// The block of k is chosen so that a panel of b, and the rows of a that it is multiplied with, stay
// in the caches.
constexpr std::int64_t kBlock = 256;

struct FloatDot {
  using Element = float;
  using Vector = __m512;
  TPUDIST_TILES static Vector load(const float* x) { return _mm512_loadu_ps(x); }
  TPUDIST_TILES static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  TPUDIST_TILES static __m512 add(__m512 sum, Vector a, Vector b) {
    return _mm512_fmadd_ps(a, b, sum);
  }
};

// Packs b [k, count <= kPanel] with zeros after its columns.
TPUDIST_TILES void pack_panel(const MatrixView& b, std::int64_t count, std::int64_t k,
                              float* panel) {
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::int64_t j = 0; j < count; j += kLanes) {
      _mm512_storeu_ps(panel + l * kPanel + j,
                       _mm512_maskz_loadu_ps(first_lanes(count - j), b.data + l * b.stride + j));
    }
  }
}

// The same for b's transpose [count, k].
TPUDIST_TILES void pack_turned_panel(const MatrixView& b, std::int64_t count, std::int64_t k,
                                     float* panel) {
  for (std::int64_t j = 0; j < count; j += kLanes) {
    const std::int64_t rows = std::min(kLanes, count - j);
    for (std::int64_t l = 0; l < k; l += kLanes) {
      const __mmask16 mask = first_lanes(k - l);
      __m512i tile[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        tile[i] = i < rows ? _mm512_maskz_loadu_epi32(mask, b.data + (j + i) * b.stride + l)
                           : _mm512_setzero_si512();
      }
      turn(tile);
      const std::int64_t elements = std::min(kLanes, k - l);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (i < elements) _mm512_storeu_si512(panel + (l + i) * kPanel + j, tile[i]);
      }
    }
  }
}

void multiply_block(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixView& a,
                    const MatrixView& b, float beta, float* c, std::int64_t c_stride) {
  const bool across = a.transpose == Transpose::yes;
  const Strip<float> left{a.data, across ? 1 : a.stride, across ? a.stride : 1};
  float* const panel = scratch<float>(0, k * kPanel);
  const auto pack = [&](std::int64_t j, std::int64_t columns) {
    if (b.transpose == Transpose::yes) {
      pack_turned_panel(from(b, 0, j), columns, k, panel);
    } else {
      pack_panel(from(b, 0, j), columns, k, panel);
    }
  };
  multiply_panels<FloatDot>(m, n, k, left, panel, beta, c, c_stride, pack);
}

}  // namespace

bool has_float_tiles() {
  return __builtin_cpu_supports("avx512f");
}

void gemm_of_tiles(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                   float beta, float* c, std::int64_t c_stride) {
  multiply_in_blocks(
      k, kBlock, a, b, beta,
      [&](std::int64_t depth, const MatrixView& of_a, const MatrixView& of_b, float scale) {
        multiply_block(m, n, depth, of_a, of_b, scale, c, c_stride);
      });
}

bool tiles_beat_blas() {
  return has_float_tiles() && !__builtin_cpu_is("intel");
}

}  // namespace tpudist

#else

namespace tpudist {

bool has_float_tiles() {
  return false;
}

bool tiles_beat_blas() {
  return false;
}

void gemm_of_tiles(std::int64_t, std::int64_t, std::int64_t, MatrixView, MatrixView, float, float*,
                   std::int64_t) {
  throw Error(ErrorKind::failed, "gemm_of_tiles: built for a CPU without AVX-512");
}

}  // namespace tpudist

#endif
