#include "models/kernels/row_launches.hpp"

#include <algorithm>

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

using cuda_rows::Channels;
using cuda_rows::load;
using cuda_rows::store;

// Enough chunks to occupy the whole GPU, few enough to add them quickly: at most 16 MB a leaf,
// unless W takes more.
constexpr std::int64_t kMostChunks = 128, kMostNumbers = 1 << 22, kLeastRows = 32,
                       kNumbersOfRow = 128;

// A row of its grid is kTile rows of W, or the bias, of one chunk. It reads kRows rows of x and d_y
// at a time.
template <int kTile, int kRows>
struct WeightGradient {
  WeightGradientSizes sizes;
  std::int64_t chunk_rows, tiles;  // of a chunk, the bias included
  RowRuns runs;
  Planes<const float> x, d_y;
  Planes<float> parts;

  __device__ void select(std::int64_t result) {
    cuda_rows::move_to(result, parts);
    cuda_rows::move_to(result / runs.count, x, d_y);
    if (!runs.runs) return;
    const RowRun own = runs.runs[result % runs.count];
    sizes.rows = own.count;
    chunk_rows = sizes.chunk_rows();
    x.data += own.begin * sizes.in;
    d_y.data += own.begin * sizes.out;
  }
  template <int N>
  __device__ void run(std::int64_t i, std::int64_t column) const {
    const std::int64_t chunk = i / tiles, first = chunk * chunk_rows, rest = sizes.rows - first,
                       count = rest < chunk_rows ? rest : chunk_rows, top = (i % tiles) * kTile,
                       in = sizes.in, out = sizes.out;
    if (first > 0 && rest <= 0) return;
    if (top != in && sizes.rows * in * out > runs.most_products) return;
    const float* from = x.data + first * in + top;
    const float* by = d_y.data + first * out + column;
    float* const to = parts.data + chunk * sizes.numbers() + top * out + column;
    if (top == in) {
      Channels<float, N> sum{};
#pragma unroll 8
      for (std::int64_t row = 0; row < count; ++row, by += out) {
        const auto term = load<N>(by);
#pragma unroll
        for (int c = 0; c < N; ++c) sum.at[c] += term.at[c];
      }
      store(to, sum);
      return;
    }
    Channels<float, N> sums[kTile] = {};
    std::int64_t row = 0;
    for (; row + kRows <= count; row += kRows, from += kRows * in, by += kRows * out)
      add<kRows>(from, by, in, out, sums);
#pragma unroll 1
    for (; row < count; ++row, from += in, by += out) add<1>(from, by, in, out, sums);
#pragma unroll
    for (int t = 0; t < kTile; ++t) store(to + t * out, sums[t]);
  }

 private:
  // Adds the products of kCount rows; all are loaded before the first is used.
  template <int kCount, int N>
  __device__ static void add(const float* from, const float* by, std::int64_t in, std::int64_t out,
                             Channels<float, N> (&sums)[kTile]) {
    Channels<float, kTile> left[kCount];
    Channels<float, N> right[kCount];
#pragma unroll
    for (int row = 0; row < kCount; ++row) {
      left[row] = load<kTile>(from + row * in);
      right[row] = load<N>(by + row * out);
    }
#pragma unroll
    for (int row = 0; row < kCount; ++row) {
#pragma unroll
      for (int t = 0; t < kTile; ++t) {
#pragma unroll
        for (int c = 0; c < N; ++c)
          sums[t].at[c] = __fmaf_rn(left[row].at[t], right[row].at[c], sums[t].at[c]);
      }
    }
  }
};

// The sum of the chunks.
struct SumOfChunks {
  WeightGradientSizes sizes;
  std::int64_t chunks, numbers, width;
  RowRuns runs;
  Planes<const float> parts;
  Planes<float> y;

  __device__ void select(std::int64_t result) {
    cuda_rows::move_to(result, parts, y);
    if (!runs.runs) return;
    sizes.rows = runs.runs[result % runs.count].count;
    chunks = sizes.chunks();
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column;
    if (row < sizes.in && sizes.rows * sizes.in * sizes.out > runs.most_products) return;
    auto sum = load<N>(parts.data + at);
#pragma unroll 16
    for (std::int64_t chunk = 1; chunk < chunks; ++chunk) {
      const auto part = load<N>(parts.data + chunk * numbers + at);
#pragma unroll
      for (int c = 0; c < N; ++c) sum.at[c] += part.at[c];
    }
    store(y.data + at, sum);
  }
};

struct DoubleProduct {
  std::int64_t inner, width;
  RowRuns runs;
  StridedPlanes a, b;
  Planes<double> y;

  __device__ void select(std::int64_t result) {
    cuda_rows::move_to(result, y);
    cuda_rows::move_to(result / runs.count, a.planes, b.planes);
    if (!runs.runs) return;
    const RowRun own = runs.runs[result % runs.count];
    inner = own.count;
    a.planes.data += own.begin * a.column;
    b.planes.data += own.begin * b.row;
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    static_assert(N == 1);
    const double* left = a.planes.data + row * a.row;
    const double* right = b.planes.data + column * b.column;
    double sum = 0;
#pragma unroll 4
    for (std::int64_t k = 0; k < inner; ++k, left += a.column, right += b.row)
      sum += __ldg(left) * __ldg(right);
    y.data[row * width + column] = sum;
  }
};

template <int kTile, int N, int kRows>
void launch(const WeightGradientSizes& sizes, std::int64_t chunks, std::int64_t results,
            const RowRuns& runs, Planes<const float> x, Planes<const float> d_y,
            Planes<float> parts, CUstream_st* stream) {
  const std::int64_t tiles = sizes.in / kTile + (sizes.bias ? 1 : 0);
  cuda_rows::launch<N>(
      tiles * chunks, Columns{sizes.out, results},
      WeightGradient<kTile, kRows>{sizes, sizes.chunk_rows(), tiles, runs, x, d_y, parts}, stream);
}

}  // namespace

TPUDIST_ON_DEVICE std::int64_t WeightGradientSizes::chunk_rows() const {
  const auto larger = [](std::int64_t a, std::int64_t b) { return a < b ? b : a; };
  if (whole) return larger(rows, 1);
  const std::int64_t fit = kMostNumbers / numbers(),
                     most = fit > kMostChunks ? kMostChunks : larger(fit, 1);
  return larger(larger(kLeastRows, in * out / kNumbersOfRow), (rows + most - 1) / most);
}

TPUDIST_ON_DEVICE std::int64_t WeightGradientSizes::chunks() const {
  return rows == 0 ? 1 : (rows + chunk_rows() - 1) / chunk_rows();
}

void launch_weight_gradient(const WeightGradientSizes& sizes, std::int64_t chunks,
                            std::int64_t results, const RowRuns& runs, Planes<const float> x,
                            Planes<const float> d_y, Planes<float> y, Planes<float> parts,
                            CUstream_st* stream) {
  const bool one = chunks == 1;
  const Planes<float> to = one ? y : parts;
  // A larger tile reads fewer numbers for each product, but leaves fewer threads. All tiles give
  // the same bits. The choice follows a trial of the tiles on an H200.
  const bool aligned = cuda_rows::aligned16(x, d_y, to),
             many = sizes.rows >= 6'000 || sizes.in * sizes.out >= 256 * 128;
  if (!aligned || sizes.in % 4 != 0 || sizes.out % 4 != 0) {
    launch<1, 1, 8>(sizes, chunks, results, runs, x, d_y, to, stream);
  } else if (sizes.in % 8 != 0) {
    launch<4, 4, 4>(sizes, chunks, results, runs, x, d_y, to, stream);
  } else if (many && sizes.out % 8 == 0) {
    launch<8, 8, 2>(sizes, chunks, results, runs, x, d_y, to, stream);
  } else {
    launch<8, 4, 8>(sizes, chunks, results, runs, x, d_y, to, stream);
  }
  if (one) return;
  cuda_rows::launch<1>(sizes.numbers() / sizes.out, Columns{sizes.out, results},
                       SumOfChunks{sizes, chunks, sizes.numbers(), sizes.out, runs, parts, y},
                       stream);
}

void launch_double_product(std::int64_t rows, std::int64_t inner, Columns columns, StridedPlanes a,
                           StridedPlanes b, Planes<double> y, CUstream_st* stream,
                           const RowRuns& runs) {
  cuda_rows::launch<1>(rows, columns, DoubleProduct{inner, columns.width, runs, a, b, y}, stream);
}

}  // namespace tpudist
