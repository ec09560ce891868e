#include "models/kernels/aggregate.hpp"

#include <cmath>
#include <type_traits>

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

using cuda_rows::aligned16;
using cuda_rows::Channels;
using cuda_rows::for_entries;
using cuda_rows::launch;
using cuda_rows::launch_wide;
using cuda_rows::load;
using cuda_rows::store;

// Each functor below computes N channels, from `column` on, of one row of its result.
template <typename T, typename Out>
struct Sum {
  CsrPointers matrix;
  std::int64_t width;
  Planes<const T> x;
  Planes<Out> y;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, y); }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    Channels<Out, N> sum{};
    for_entries(matrix, row, [&](float weight, std::int64_t source) {
      const auto term = load<N>(x + source * width + column);
#pragma unroll
      for (int i = 0; i < N; ++i) sum.at[i] += static_cast<Out>(weight) * term.at[i];
    });
    store(y + row * width + column, sum);
  }
};

template <typename T>
struct DivideByTotals {
  CsrPointers matrix;
  std::int64_t width;
  Planes<const T> x;
  Planes<T> y;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, y); }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    double total = 0;
    if (matrix.weight) {
      for_entries(matrix, row, [&](float weight, std::int64_t) { total += weight; });
    } else {
      total = static_cast<double>(matrix.begin[row + 1] - matrix.begin[row]);
    }
    // Not load<N>, which may read x through a different cache than the one in which y is written.
    for (int i = 0; i < N; ++i) {
      const std::int64_t place = row * width + column + i;
      y[place] = total > 1 ? x[place] / static_cast<T>(total) : x[place];
    }
  }
};

template <typename T>
struct Max {
  CsrPointers matrix;
  std::int64_t width;
  Planes<const T> x;
  Planes<T> best;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, best); }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const bool none = matrix.begin[row] == matrix.begin[row + 1];
    Channels<T, N> most;
#pragma unroll
    for (int i = 0; i < N; ++i) most.at[i] = none ? T{0} : -static_cast<T>(INFINITY);
    for_entries(matrix, row, [&](float, std::int64_t source) {
      const auto term = load<N>(x + source * width + column);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (term.at[i] > most.at[i] || isnan(term.at[i])) most.at[i] = term.at[i];
      }
    });
    store(best + row * width + column, most);
  }
};

template <typename T>
struct MaxShares {
  CsrPointers matrix;
  std::int64_t width;
  Planes<const T> x, best, gradient;
  Planes<T> share;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, best, gradient, share);
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t place = row * width + column;
    const auto most = load<N>(best + place);
    Channels<T, N> tied{};
    for_entries(matrix, row, [&](float weight, std::int64_t source) {
      const auto term = load<N>(x + source * width + column);
#pragma unroll
      for (int i = 0; i < N; ++i) tied.at[i] += term.at[i] == most.at[i] ? weight : 0.0f;
    });
    auto part = load<N>(gradient + place);
#pragma unroll
    for (int i = 0; i < N; ++i) part.at[i] = tied.at[i] > 0 ? part.at[i] / tied.at[i] : T{0};
    store(share + place, part);
  }
};

template <typename T>
struct MaxGradient {
  CsrPointers transposed;
  std::int64_t width;
  Planes<const T> x, best, share;
  Planes<T> y;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, best, share, y); }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto own = load<N>(x + row * width + column);
    Channels<T, N> sum{};
    for_entries(transposed, row, [&](float weight, std::int64_t source) {
      const std::int64_t place = source * width + column;
      const auto most = load<N>(best + place), part = load<N>(share + place);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (own.at[i] == most.at[i]) sum.at[i] += weight * part.at[i];
      }
    });
    store(y + row * width + column, sum);
  }
};

}  // namespace

void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const float> x,
                      Planes<float> y, CUstream_st* stream) {
  launch_wide<float>(matrix.rows, columns, aligned16(x, y),
                     Sum<float, float>{matrix, columns.width, x, y}, stream);
}

void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const float> x,
                      Planes<double> y, CUstream_st* stream) {
  launch<1>(matrix.rows, columns, Sum<float, double>{matrix, columns.width, x, y}, stream);
}

void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const double> x,
                      Planes<double> y, CUstream_st* stream) {
  launch<1>(matrix.rows, columns, Sum<double, double>{matrix, columns.width, x, y}, stream);
}

template <typename T>
void launch_divide_by_totals(const CsrPointers& matrix, Columns columns, Planes<const T> x,
                             Planes<T> y, CUstream_st* stream) {
  launch_wide<T>(matrix.rows, columns, true, DivideByTotals<T>{matrix, columns.width, x, y},
                 stream);
}

template <typename T>
void launch_max(const CsrPointers& matrix, Columns columns, Planes<const T> x, Planes<T> best,
                CUstream_st* stream) {
  launch_wide<T>(matrix.rows, columns, aligned16(x, best), Max<T>{matrix, columns.width, x, best},
                 stream);
}

template <typename T>
void launch_max_shares(const CsrPointers& matrix, Columns columns, Planes<const T> x,
                       Planes<const T> best, Planes<const T> gradient, Planes<T> share,
                       CUstream_st* stream) {
  launch_wide<T>(matrix.rows, columns, aligned16(x, best, gradient, share),
                 MaxShares<T>{matrix, columns.width, x, best, gradient, share}, stream);
}

template <typename T>
void launch_max_gradient(const CsrPointers& transposed, Columns columns, Planes<const T> x,
                         Planes<const T> best, Planes<const T> share, Planes<T> y,
                         CUstream_st* stream) {
  launch_wide<T>(transposed.rows, columns, aligned16(x, best, share, y),
                 MaxGradient<T>{transposed, columns.width, x, best, share, y}, stream);
}

#define TPUDIST_FOR(T)                                                                             \
  template void launch_divide_by_totals(const CsrPointers&, Columns, Planes<const T>, Planes<T>,   \
                                        CUstream_st*);                                             \
  template void launch_max(const CsrPointers&, Columns, Planes<const T>, Planes<T>, CUstream_st*); \
  template void launch_max_shares(const CsrPointers&, Columns, Planes<const T>, Planes<const T>,   \
                                  Planes<const T>, Planes<T>, CUstream_st*);                       \
  template void launch_max_gradient(const CsrPointers&, Columns, Planes<const T>, Planes<const T>, \
                                    Planes<const T>, Planes<T>, CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
