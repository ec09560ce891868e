#include "models/kernels/row_launches.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

using cuda_rows::AddedUp;
using cuda_rows::aligned16;
using cuda_rows::Channels;
using cuda_rows::launch_walk;
using cuda_rows::load;
using cuda_rows::store;
using cuda_rows::Sums;

// The divisor of a sum: none, the total of its row, or for each of its terms the total of the
// source.
enum class Totals { none, of_row, of_source };

template <typename T, typename Out, Totals kTotals = Totals::none>
struct Sum : AddedUp<Out, 1> {
  std::int64_t width;
  Planes<const T> x;
  Planes<Out> y;
  const float* total;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, y); }
  template <int N>
  __device__ Sums<Out, 1, N> start(std::int64_t, std::int64_t) const {
    return {};
  }
  template <int N>
  __device__ void add(Sums<Out, 1, N>& sum, float weight, std::int64_t source,
                      std::int64_t column) const {
    auto term = load<N>(x + source * width + column);
    if constexpr (kTotals == Totals::of_source) divide(term, __ldg(total + source));
#pragma unroll
    for (int i = 0; i < N; ++i) sum.of[0].at[i] += static_cast<Out>(weight) * term.at[i];
  }
  template <int N>
  __device__ void finish(Sums<Out, 1, N>& sum, std::int64_t row, std::int64_t column) const {
    if constexpr (kTotals == Totals::of_row) divide(sum.of[0], __ldg(total + row));
    store(y + row * width + column, sum.of[0]);
  }
  template <typename Number, int N>
  __device__ static void divide(Channels<Number, N>& x, float by) {
#pragma unroll
    for (int i = 0; i < N; ++i) x.at[i] /= static_cast<Number>(by);
  }
};

// kSummedRows rows of x for each row of y.
template <typename T>
struct SumOfRows {
  std::int64_t rows, width;
  Planes<const T> x;
  Planes<T> y;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, y); }
  template <int N>
  __device__ void run(std::int64_t i, std::int64_t column) const {
    const std::int64_t first = i * kSummedRows, rest = rows - first,
                       count = rest < kSummedRows ? rest : kSummedRows;
    Channels<T, N> sum{};
#pragma unroll 4
    for (std::int64_t row = first; row < first + count; ++row) {
      const auto term = load<N>(x + row * width + column);
#pragma unroll
      for (int c = 0; c < N; ++c) sum.at[c] += term.at[c];
    }
    store(y + i * width + column, sum);
  }
};

template <typename T>
struct Max {
  using Number = T;
  static constexpr int kNumbers = 1;
  const std::int32_t* begin;
  std::int64_t width;
  Planes<const T> x;
  Planes<T> best;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, best); }
  template <int N>
  __device__ Sums<T, 1, N> start(std::int64_t row, std::int64_t) const {
    const bool none = begin[row] == begin[row + 1];
    Sums<T, 1, N> most;
#pragma unroll
    for (int i = 0; i < N; ++i) most.of[0].at[i] = none ? T{0} : -static_cast<T>(INFINITY);
    return most;
  }
  template <int N>
  __device__ void add(Sums<T, 1, N>& most, float, std::int64_t source, std::int64_t column) const {
    merge(most, Sums<T, 1, N>{{load<N>(x + source * width + column)}});
  }
  template <int N>
  __device__ void merge(Sums<T, 1, N>& most, const Sums<T, 1, N>& part) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const T term = part.of[0].at[i];
      if (term > most.of[0].at[i] || isnan(term)) most.of[0].at[i] = term;
    }
  }
  template <int N>
  __device__ void finish(Sums<T, 1, N>& most, std::int64_t row, std::int64_t column) const {
    store(best + row * width + column, most.of[0]);
  }
};

template <typename T, int N>
struct Compared : Sums<T, 1, N> {
  Channels<T, N> with;
};

template <typename T>
struct MaxShares : AddedUp<T, 1> {
  std::int64_t width;
  Planes<const T> x, best, gradient;
  Planes<T> share;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, best, gradient, share);
  }
  template <int N>
  __device__ Compared<T, N> start(std::int64_t row, std::int64_t column) const {
    return {{}, load<N>(best + row * width + column)};
  }
  template <int N>
  __device__ void add(Compared<T, N>& tied, float weight, std::int64_t source,
                      std::int64_t column) const {
    const auto term = load<N>(x + source * width + column);
#pragma unroll
    for (int i = 0; i < N; ++i) tied.of[0].at[i] += term.at[i] == tied.with.at[i] ? weight : 0.0f;
  }
  template <int N>
  __device__ void finish(Compared<T, N>& tied, std::int64_t row, std::int64_t column) const {
    const std::int64_t place = row * width + column;
    auto part = load<N>(gradient + place);
#pragma unroll
    for (int i = 0; i < N; ++i)
      part.at[i] = tied.of[0].at[i] > 0 ? part.at[i] / tied.of[0].at[i] : T{0};
    store(share + place, part);
  }
};

template <typename T>
struct MaxGradient : AddedUp<T, 1> {
  std::int64_t width;
  Planes<const T> x, best, share;
  Planes<T> y;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, best, share, y); }
  template <int N>
  __device__ Compared<T, N> start(std::int64_t row, std::int64_t column) const {
    return {{}, load<N>(x + row * width + column)};
  }
  template <int N>
  __device__ void add(Compared<T, N>& sum, float weight, std::int64_t source,
                      std::int64_t column) const {
    const std::int64_t place = source * width + column;
    const auto most = load<N>(best + place), part = load<N>(share + place);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (sum.with.at[i] == most.at[i]) sum.of[0].at[i] += weight * part.at[i];
    }
  }
  template <int N>
  __device__ void finish(Compared<T, N>& sum, std::int64_t row, std::int64_t column) const {
    store(y + row * width + column, sum.of[0]);
  }
};

std::int64_t chunks_of(std::int64_t rows) {
  return (rows + kSummedRows - 1) / kSummedRows;
}

}  // namespace

void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const float> x,
                      Planes<float> y, Planes<float> parts, CUstream_st* stream) {
  launch_walk(matrix, columns, aligned16(x, y), Sum<float, float>{{}, columns.width, x, y, nullptr},
              parts, stream);
}

void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const float> x,
                      Planes<double> y, Planes<double> parts, CUstream_st* stream) {
  launch_walk(matrix, columns, false, Sum<float, double>{{}, columns.width, x, y, nullptr}, parts,
              stream);
}

void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const double> x,
                      Planes<double> y, Planes<double> parts, CUstream_st* stream) {
  launch_walk(matrix, columns, false, Sum<double, double>{{}, columns.width, x, y, nullptr}, parts,
              stream);
}

template <typename T>
void launch_mean(const CsrPointers& matrix, const float* total, Columns columns, Planes<const T> x,
                 Planes<T> y, Planes<T> parts, CUstream_st* stream) {
  launch_walk(matrix, columns, aligned16(x, y),
              Sum<T, T, Totals::of_row>{{}, columns.width, x, y, total}, parts, stream);
}

template <typename T>
void launch_mean_gradient(const CsrPointers& transposed, const float* total, Columns columns,
                          Planes<const T> x, Planes<T> y, Planes<T> parts, CUstream_st* stream) {
  launch_walk(transposed, columns, aligned16(x, y),
              Sum<T, T, Totals::of_source>{{}, columns.width, x, y, total}, parts, stream);
}

std::int64_t summed_parts(std::int64_t rows) {
  const std::int64_t chunks = chunks_of(rows);
  return chunks <= 1 ? 0 : chunks + chunks_of(chunks);
}

template <typename T>
void launch_sum_of_rows(std::int64_t rows, Columns columns, Planes<const T> x, Planes<T> y,
                        Planes<T> parts, CUstream_st* stream) {
  // Sums of chunks alternate between two places: after the chunks, and over the chunks.
  Planes<T> to = parts, other = {parts.data + chunks_of(rows) * columns.width, parts.distance};
  while (true) {
    const std::int64_t chunks = std::max<std::int64_t>(chunks_of(rows), 1);
    if (chunks == 1) to = y;
    cuda_rows::launch_wide<T>(chunks, columns, aligned16(x, to),
                              SumOfRows<T>{rows, columns.width, x, to}, stream);
    if (chunks == 1) return;
    x = to;
    rows = chunks;
    std::swap(to, other);
  }
}

template <typename T>
void launch_max(const CsrPointers& matrix, Columns columns, Planes<const T> x, Planes<T> best,
                Planes<T> parts, CUstream_st* stream) {
  launch_walk(matrix, columns, aligned16(x, best), Max<T>{matrix.begin, columns.width, x, best},
              parts, stream);
}

template <typename T>
void launch_max_shares(const CsrPointers& matrix, Columns columns, Planes<const T> x,
                       Planes<const T> best, Planes<const T> gradient, Planes<T> share,
                       Planes<T> parts, CUstream_st* stream) {
  launch_walk(matrix, columns, aligned16(x, best, gradient, share),
              MaxShares<T>{{}, columns.width, x, best, gradient, share}, parts, stream);
}

template <typename T>
void launch_max_gradient(const CsrPointers& transposed, Columns columns, Planes<const T> x,
                         Planes<const T> best, Planes<const T> share, Planes<T> y, Planes<T> parts,
                         CUstream_st* stream) {
  launch_walk(transposed, columns, aligned16(x, best, share, y),
              MaxGradient<T>{{}, columns.width, x, best, share, y}, parts, stream);
}

#define TPUDIST_FOR(T)                                                                             \
  template void launch_mean(const CsrPointers&, const float*, Columns, Planes<const T>, Planes<T>, \
                            Planes<T>, CUstream_st*);                                              \
  template void launch_mean_gradient(const CsrPointers&, const float*, Columns, Planes<const T>,   \
                                     Planes<T>, Planes<T>, CUstream_st*);                          \
  template void launch_sum_of_rows(std::int64_t, Columns, Planes<const T>, Planes<T>, Planes<T>,   \
                                   CUstream_st*);                                                  \
  template void launch_max(const CsrPointers&, Columns, Planes<const T>, Planes<T>, Planes<T>,     \
                           CUstream_st*);                                                          \
  template void launch_max_shares(const CsrPointers&, Columns, Planes<const T>, Planes<const T>,   \
                                  Planes<const T>, Planes<T>, Planes<T>, CUstream_st*);            \
  template void launch_max_gradient(const CsrPointers&, Columns, Planes<const T>, Planes<const T>, \
                                    Planes<const T>, Planes<T>, Planes<T>, CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
