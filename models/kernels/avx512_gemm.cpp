#include "models/kernels/gemm.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define TPUDIST_TILES __attribute__((target("avx512f")))
#include "models/kernels/avx512_vectors.hpp"

namespace tpudist {
namespace {

struct Avx512Dot : Avx512Sums {
  using Element = float;
  using Vector = __m512;
  TPUDIST_TILES static Vector load(const float* x) { return _mm512_loadu_ps(x); }
  TPUDIST_TILES static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  TPUDIST_TILES static Sum add(Sum sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }

  TPUDIST_TILES static void pack(const MatrixView& b, std::int64_t count, std::int64_t k,
                                 float* panel) {
    if (b.transpose == Transpose::yes) return pack_turned(b, count, k, panel);
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < count; j += kLanes)
        _mm512_storeu_ps(panel + l * kPanel<Avx512Dot> + j, get(b.data + l * b.stride + j, count - j));
    }
  }

 private:
  TPUDIST_TILES static void pack_turned(const MatrixView& b, std::int64_t count, std::int64_t k,
                                        float* panel) {
    for (std::int64_t j = 0; j < count; j += kLanes) {
      const std::int64_t rows = std::min<std::int64_t>(kLanes, count - j);
      for (std::int64_t l = 0; l < k; l += kLanes) {
        const __mmask16 mask = first_lanes(k - l);
        __m512i tile[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) {
          tile[i] = i < rows ? _mm512_maskz_loadu_epi32(mask, b.data + (j + i) * b.stride + l)
                             : _mm512_setzero_si512();
        }
        turn(tile);
        const std::int64_t elements = std::min<std::int64_t>(kLanes, k - l);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) {
          if (i < elements) _mm512_storeu_si512(panel + (l + i) * kPanel<Avx512Dot> + j, tile[i]);
        }
      }
    }
  }
};

}  // namespace

bool has_avx512_products() {
  return __builtin_cpu_supports("avx512f");
}

void gemm_by_avx512(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                    float beta, float* c, std::int64_t c_stride) {
  multiply_floats<Avx512Dot>(m, n, k, a, b, beta, c, c_stride);
}

}  // namespace tpudist
#endif
