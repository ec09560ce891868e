#include "models/kernels/row_launches.hpp"

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

using cuda_rows::load;

// With kAdd the terms are added to y.
template <typename T, int kTerms, bool kAdd>
struct Take {
  std::int64_t width;
  Planes<T> y;
  TakenRows<T> terms[kTerms];

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, y);
#pragma unroll
    for (int t = 0; t < kTerms; ++t) cuda_rows::move_to(member, terms[t].x);
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    T* const out = y + row * width + column;
    cuda_rows::Channels<T, N> sum;
    if constexpr (kAdd) {
#pragma unroll
      for (int i = 0; i < N; ++i) sum.at[i] = out[i];
    }
#pragma unroll
    for (int t = 0; t < kTerms; ++t) {
      const std::int64_t source = terms[t].index ? __ldg(terms[t].index + row) : row;
      const auto taken = load<N>(terms[t].x + source * width + column);
#pragma unroll
      for (int i = 0; i < N; ++i) sum.at[i] = kAdd || t > 0 ? sum.at[i] + taken.at[i] : taken.at[i];
    }
    cuda_rows::store(out, sum);
  }
};

template <int kTerms, bool kAdd, typename T>
void launch_terms(const TakenRows<T>* terms, std::int64_t rows, Columns columns, Planes<T> y,
                  CUstream_st* stream) {
  Take<T, kTerms, kAdd> work{columns.width, y, {}};
  bool aligned = cuda_rows::aligned16(y);
  for (int t = 0; t < kTerms; ++t) {
    work.terms[t] = terms[t];
    aligned = aligned && cuda_rows::aligned16(terms[t].x);
  }
  cuda_rows::launch_wide<T>(rows, columns, aligned, work, stream);
}

}  // namespace

template <typename T>
void launch_take(const TakenRows<T>* terms, int count, std::int64_t rows, Columns columns,
                 Planes<T> y, CUstream_st* stream) {
  if (count == 1) return launch_terms<1, false>(terms, rows, columns, y, stream);
  if (count == 2) return launch_terms<2, false>(terms, rows, columns, y, stream);
  launch_terms<3, false>(terms, rows, columns, y, stream);
  for (int t = 3; t < count; ++t) launch_terms<1, true>(terms + t, rows, columns, y, stream);
}

#define TPUDIST_FOR(T)                                                                  \
  template void launch_take(const TakenRows<T>*, int, std::int64_t, Columns, Planes<T>, \
                            CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
