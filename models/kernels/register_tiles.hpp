#pragma once

// How the products (avx2_gemm.cpp, avx512_gemm.cpp, bf16_gemm.cpp, gemm.cpp) traverse their operands:
// tiles of c are summed in registers, from rows of a and packed panels of b's columns. Only for
// those files. Each first defines TPUDIST_TILES, the attribute of its instruction sets, so
// everything here is compiled separately for each file.
//
// A Dot defines a product and the vectors that it uses:
//   Element          of the packed operands
//   kLanes           numbers in a vector
//   kRows, kVectors  most rows and vectors of a tile, whose sums stay in registers
//   Vector, Sum      elements of b, and sums
//   load(p), broadcast(x), add(sum, a, b)
//   get(p, n), put(p, n, sum), scaled(beta, before, sum)
//                    the first n numbers at p (0 behind them), writing them, and
//                    beta * before + sum in one rounding

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/aligned.hpp"
#include "models/kernels/gemm.hpp"

namespace tpudist {
namespace {

template <class Dot>
constexpr std::int64_t kPanel = Dot::kLanes * Dot::kVectors;

// Rows of a: element l of row i at data[i * stride + l * step].
template <class Element>
struct Strip {
  const Element* data;
  std::int64_t stride, step;
};

// c [R, (V - 1) lanes + last] = a b + beta * c over `depth` elements of a; rows of b are `b_stride`
// elements apart.
template <class Dot, int R, int V>
TPUDIST_TILES void multiply_tile(std::int64_t depth, Strip<typename Dot::Element> a,
                                 const typename Dot::Element* b, std::int64_t b_stride, float beta,
                                 float* c, std::int64_t c_stride, std::int64_t last) {
  typename Dot::Sum sums[R][V];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      sums[r][v] = typename Dot::Sum{};
      __builtin_prefetch(c + r * c_stride + v * Dot::kLanes, 1);  // c is loaded while the sums are
                                                                  // computed
    }
  }
  for (std::int64_t l = 0; l < depth; ++l) {
    typename Dot::Vector of_b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) of_b[v] = Dot::load(b + l * b_stride + v * Dot::kLanes);
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
      const std::int64_t count = v + 1 == V ? last : Dot::kLanes;
      float* const place = c + r * c_stride + v * Dot::kLanes;
      Dot::put(place, count,
               beta == 0 ? sums[r][v] : Dot::scaled(beta, Dot::get(place, count), sums[r][v]));
    }
  }
}

template <class Dot, int... I>
constexpr auto all_tiles(std::integer_sequence<int, I...>) {
  return std::array{&multiply_tile<Dot, I / Dot::kVectors + 1, I % Dot::kVectors + 1>...};
}

// Every size of a tile, [rows - 1][vectors - 1].
template <class Dot>
constexpr auto kTiles = all_tiles<Dot>(
    std::make_integer_sequence<int, Dot::kRows * Dot::kVectors>());

// Columns of b, or of a copy of them.
template <class Element>
struct Panel {
  const Element* data;
  std::int64_t stride;
};

// c [m, n] = a b + beta * c, `depth` elements of a. strip(i) returns a's rows from i on, and
// panel(j, columns) b's columns j .. j + columns - 1, which must be whole vectors.
template <class Dot, class Strips, class Panels>
void multiply_panels(std::int64_t m, std::int64_t n, std::int64_t depth, const Strips& strip,
                     float beta, float* c, std::int64_t c_stride, const Panels& panel) {
  for (std::int64_t j = 0; j < n; j += kPanel<Dot>) {
    const std::int64_t columns = std::min(kPanel<Dot>, n - j),
                       vectors = (columns + Dot::kLanes - 1) / Dot::kLanes;
    const Panel<typename Dot::Element> b = panel(j, columns);
    for (std::int64_t i = 0; i < m; i += Dot::kRows) {
      const std::int64_t rows = std::min<std::int64_t>(Dot::kRows, m - i);
      kTiles<Dot>[(rows - 1) * Dot::kVectors + vectors - 1](
          depth, strip(i), b.data, b.stride, beta, c + i * c_stride + j, c_stride,
          columns - (vectors - 1) * Dot::kLanes);
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

// Copies the rows of a [m, depth], which lie across, as each tile reads them: [tile][depth][rows].
template <class Dot>
TPUDIST_TILES const float* copy_across(const MatrixView& a, std::int64_t m, std::int64_t depth) {
  constexpr std::int64_t kTogether = 8;  // columns of a: few streams of reads and of writes
  float* const copy = scratch<float>(1, m * depth);
  for (std::int64_t begin = 0; begin < depth; begin += kTogether) {
    const std::int64_t end = std::min(depth, begin + kTogether);
    for (std::int64_t i = 0; i < m; i += Dot::kRows) {
      const std::int64_t rows = std::min<std::int64_t>(Dot::kRows, m - i);
      for (std::int64_t l = begin; l < end; ++l) {
        const float* const in = a.data + l * a.stride + i;
        float* const out = copy + i * depth + l * rows;
        if (rows == Dot::kRows) {
#pragma GCC unroll 6
          for (int r = 0; r < Dot::kRows; ++r) out[r] = in[r];
        } else {
          for (int r = 0; r < rows; ++r) out[r] = in[r];
        }
      }
    }
  }
  return copy;
}

// Rows of a matrix that are read next: each call of fetch() asks for some of their lines, so that
// they come from memory while tiles are computed.
struct Ahead {
  const float* data = nullptr;
  std::int64_t stride = 0, rows = 0, columns = 0, calls = 1;  // in which to ask for all
  std::int64_t row = 0, column = 0;
  void fetch() {
    constexpr std::int64_t kLine = 16;
    for (std::int64_t lines = rows * columns / kLine / calls; lines >= 0 && row < rows; --lines) {
      __builtin_prefetch(data + row * stride + column);
      if ((column += kLine) < columns) continue;
      column = 0;
      ++row;
    }
  }
};

// The product of float32 operands: each element of c is the sum of chains of fused multiply-adds
// over 256 elements of k, whatever the vectors of Dot, so all Dots give the same bits. The block is
// chosen so that a panel of b, and the rows of a that it is multiplied with, stay in the caches.
// Dot::pack(b, columns, k, panels) packs b [k, columns] as [panels][k][kPanel], with zeros up to a
// whole vector.
template <class Dot>
void multiply_floats(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixView& a,
                     const MatrixView& b, float beta, float* c, std::int64_t c_stride) {
  // Several panels are copied at once: reads of 64 neighbours are quicker.
  constexpr std::int64_t kBlock = 256, kColumns = std::max<std::int64_t>(64, kPanel<Dot>);
  // Gradients of weights read both operands from memory.
  const bool reads_ahead = a.transpose == Transpose::yes && b.transpose == Transpose::no;
  const std::int64_t calls = (m + Dot::kRows - 1) / Dot::kRows * (kColumns / kPanel<Dot>);
  std::int64_t left_of_k = k;
  Ahead next_a, next_b;
  const auto block = [&](std::int64_t depth, const MatrixView& of_a, const MatrixView& of_b,
                         float scale) {
    left_of_k -= depth;
    // Rows of a that lie across, far apart, do not stay in the cache from panel to panel: they are
    // copied.
    const bool across = of_a.transpose == Transpose::yes;
    const bool copied = across && of_a.stride >= 256 && n > 2 * kPanel<Dot>;
    Strip<float> left{of_a.data, across ? 1 : of_a.stride, across ? of_a.stride : 1};
    if (copied) left.data = copy_across<Dot>(of_a, m, depth);
    const auto strip = [&](std::int64_t i) {
      if (reads_ahead) {
        next_a.fetch();
        next_b.fetch();
      }
      const std::int64_t rows = std::min<std::int64_t>(Dot::kRows, m - i);
      return copied ? Strip<float>{left.data + i * depth, 1, rows}
                    : Strip<float>{left.data + i * left.stride, left.stride, left.step};
    };
    // Panels that one tile reads are not worth a copy.
    const bool direct =
        m <= Dot::kRows && of_b.transpose == Transpose::no && n % Dot::kLanes == 0;
    const auto panel = [&](std::int64_t j, std::int64_t) {
      if (direct) return Panel<float>{of_b.data + j, of_b.stride};
      float* const copy = scratch<float>(0, depth * kColumns);
      if (j % kColumns == 0) {
        Dot::pack(from(of_b, 0, j), std::min(kColumns, n - j), depth, copy);
        const std::int64_t more = n - j - kColumns;
        if (reads_ahead && more > 0) {
          next_b = {of_b.data + j + kColumns, of_b.stride, depth, std::min(kColumns, more), calls};
        } else if (reads_ahead) {
          const std::int64_t rows = std::min(kBlock, left_of_k);
          next_a = {of_a.data + depth * of_a.stride, of_a.stride, rows, m, calls};
          next_b = {of_b.data + depth * of_b.stride, of_b.stride, rows, std::min(kColumns, n),
                    calls};
        }
      }
      return Panel<float>{copy + j % kColumns * depth, kPanel<Dot>};
    };
    multiply_panels<Dot>(m, n, depth, strip, scale, c, c_stride, panel);
  };
  multiply_in_blocks(k, kBlock, a, b, beta, block);
}

}  // namespace
}  // namespace tpudist
