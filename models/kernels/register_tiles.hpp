#pragma once

// How the AVX-512 products (fp32_gemm.cpp, bf16_gemm.cpp) traverse their operands: tiles of c are
// summed in registers, from rows of a and packed panels of b's columns. Only for those two files.
// Each first defines TPUDIST_TILES, the attribute of its instruction sets, so everything here is
// compiled separately for each file.

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/aligned.hpp"
#include "models/kernels/gemm.hpp"

namespace tpudist {
namespace {

constexpr int kTileRows = 6, kTileVectors = 4;  // 24 sums, 4 vectors of b and 1 of a in registers
constexpr std::int64_t kLanes = 16, kPanel = kLanes * kTileVectors;

inline __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}

// Transposes 16 x 16 by exchanging bit s of row and lane number, for each bit.
TPUDIST_TILES inline void turn(__m512i (&rows)[kLanes]) {
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

// Rows of a: element l of row i at data[i * stride + l * step].
template <class Element>
struct Strip {
  const Element* data;
  std::int64_t stride, step;
};

// c [R, 16 V] = a b + beta * c over `depth` elements of a; `last` masks the last vector of columns.
// Dot defines the product: its Element, Vector, load, broadcast and add.
template <class Dot, int R, int V>
TPUDIST_TILES void multiply_tile(std::int64_t depth, Strip<typename Dot::Element> a,
                                 const typename Dot::Element* b, float beta, float* c,
                                 std::int64_t c_stride, __mmask16 last) {
  __m512 sums[R][V];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      sums[r][v] = _mm512_setzero_ps();
      __builtin_prefetch(c + r * c_stride + v * kLanes, 1);  // c is loaded while the sums are
                                                             // computed
    }
  }
  for (std::int64_t l = 0; l < depth; ++l) {
    typename Dot::Vector of_b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) of_b[v] = Dot::load(b + l * kPanel + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const auto of_a = Dot::broadcast(a.data[r * a.stride + l * a.step]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = Dot::add(sums[r][v], of_a, of_b[v]);
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

template <class Dot, int... I>
constexpr auto all_tiles(std::integer_sequence<int, I...>) {
  return std::array{&multiply_tile<Dot, I / kTileVectors + 1, I % kTileVectors + 1>...};
}

// Every size of a tile, [rows - 1][vectors - 1].
template <class Dot>
constexpr auto kTiles = all_tiles<Dot>(std::make_integer_sequence<int, kTileRows * kTileVectors>());

// c [m, n] = a b + beta * c, `depth` elements of a. pack(j, columns) fills `panel` with b's columns
// j .. j + columns - 1.
template <class Dot, class Pack>
void multiply_panels(std::int64_t m, std::int64_t n, std::int64_t depth,
                     Strip<typename Dot::Element> a, const typename Dot::Element* panel, float beta,
                     float* c, std::int64_t c_stride, const Pack& pack) {
  for (std::int64_t j = 0; j < n; j += kPanel) {
    const std::int64_t columns = std::min(kPanel, n - j), vectors = pad16(columns) / kLanes;
    const __mmask16 last = first_lanes(columns - (vectors - 1) * kLanes);
    pack(j, columns);
    for (std::int64_t i = 0; i < m; i += kTileRows) {
      const std::int64_t rows = std::min<std::int64_t>(kTileRows, m - i);
      kTiles<Dot>[(rows - 1) * kTileVectors + vectors - 1](
          depth, {a.data + i * a.stride, a.stride, a.step}, panel, beta, c + i * c_stride + j,
          c_stride, last);
    }
  }
}

// Memory of the calling thread, of undefined content, valid until the next call with this slot.
template <class Element>
Element* scratch(int slot, std::int64_t size) {
  thread_local std::vector<Element, AlignedAllocator<Element>> memory[2];
  if (static_cast<std::int64_t>(memory[slot].size()) < size) memory[slot].resize(size);
  return memory[slot].data();
}

// The view without its first `row` rows and `column` columns.
inline MatrixView from(const MatrixView& x, std::int64_t row, std::int64_t column) {
  if (x.transpose == Transpose::yes) std::swap(row, column);
  return {x.data + row * x.stride + column, x.stride, x.transpose};
}

// c = a b + beta * c by multiply_block(k, a, b, beta) on at most `block` of k at a time, also if k
// is 0.
template <class MultiplyBlock>
void multiply_in_blocks(std::int64_t k, std::int64_t block, const MatrixView& a,
                        const MatrixView& b, float beta, const MultiplyBlock& multiply_block) {
  std::int64_t begin = 0;
  do {
    multiply_block(std::min(block, k - begin), from(a, 0, begin), from(b, begin, 0),
                   begin ? 1 : beta);
    begin += block;
  } while (begin < k);
}

}  // namespace
}  // namespace tpudist
