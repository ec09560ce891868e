#include "models/kernels/gather_rows.hpp"

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

using cuda_rows::load;

template <typename T, bool kAdd>
struct Take {
  const std::int32_t* index;
  std::int64_t width;
  Planes<const T> x;
  Planes<T> y;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, y); }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t source = index ? __ldg(index + row) : row;
    auto taken = load<N>(x + source * width + column);
    T* const out = y + row * width + column;
    if constexpr (kAdd) {
#pragma unroll
      for (int i = 0; i < N; ++i) taken.at[i] = out[i] + taken.at[i];
    }
    cuda_rows::store(out, taken);
  }
};

}  // namespace

template <typename T>
void launch_take(const std::int32_t* index, std::int64_t rows, Columns columns, Planes<const T> x,
                 bool add, Planes<T> y, CUstream_st* stream) {
  const bool aligned = cuda_rows::aligned16(x, y);
  if (add) {
    cuda_rows::launch_wide<T>(rows, columns, aligned, Take<T, true>{index, columns.width, x, y},
                              stream);
  } else {
    cuda_rows::launch_wide<T>(rows, columns, aligned, Take<T, false>{index, columns.width, x, y},
                              stream);
  }
}

#define TPUDIST_FOR(T)                                                                         \
  template void launch_take(const std::int32_t*, std::int64_t, Columns, Planes<const T>, bool, \
                            Planes<T>, CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
