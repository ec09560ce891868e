#include "models/kernels/aggregate.hpp"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/error.hpp"
#include "models/kernels/cuda_launch.hpp"

namespace tpudist {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;

// N neighbouring channels of a row, held by one thread.
template <int N>
struct Channels {
  float at[N];
};

template <int N>
__device__ Channels<N> load(const float* from) {
  Channels<N> x;
  if constexpr (N == 1) {
    x.at[0] = __ldg(from);
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const float4 four = __ldg(reinterpret_cast<const float4*>(from + i));
      x.at[i] = four.x;
      x.at[i + 1] = four.y;
      x.at[i + 2] = four.z;
      x.at[i + 3] = four.w;
    }
  }
  return x;
}

template <int N>
__device__ void store(float* to, const Channels<N>& x) {
  if constexpr (N == 1) {
    *to = x.at[0];
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      *reinterpret_cast<float4*>(to + i) = {x.at[i], x.at[i + 1], x.at[i + 2], x.at[i + 3]};
    }
  }
}

// Rounded to the nearest, in one store of 2 N bytes.
template <int N>
__device__ void store(__nv_bfloat16* to, const Channels<N>& x) {
  if constexpr (N == 1) {
    *to = __float2bfloat16_rn(x.at[0]);
  } else {
    struct alignas(2 * N) Pairs {
      __nv_bfloat162 of[N / 2];
    } pairs;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      pairs.of[i] = __floats2bfloat162_rn(x.at[2 * i], x.at[2 * i + 1]);
    }
    *reinterpret_cast<Pairs*>(to) = pairs;
  }
}

// take(weight, source) for the entries of a row, in their order. They are unrolled so that several
// sources are on their way at a time.
template <typename Take>
__device__ void for_entries(const CsrPointers& matrix, std::int64_t row, const Take& take) {
  const std::int64_t last = matrix.begin[row + 1];
#pragma unroll 4
  for (std::int64_t e = matrix.begin[row]; e < last; ++e) {
    take(matrix.weight ? __ldg(matrix.weight + e) : 1.0f,
         static_cast<std::int64_t>(__ldg(matrix.source + e)));
  }
}

// Each functor below makes N channels, from `column` on, of one row of its result.
template <typename Out>
struct Sum {
  CsrPointers matrix;
  std::int64_t width;
  const float* x;
  Out* y;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    Channels<N> sum{};
    for_entries(matrix, row, [&](float weight, std::int64_t source) {
      const auto term = load<N>(x + source * width + column);
#pragma unroll
      for (int i = 0; i < N; ++i) sum.at[i] += weight * term.at[i];
    });
    store(y + row * width + column, sum);
  }
};

struct Max {
  CsrPointers matrix;
  std::int64_t width;
  const float* x;
  float* best;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const bool none = matrix.begin[row] == matrix.begin[row + 1];
    Channels<N> most;
#pragma unroll
    for (int i = 0; i < N; ++i) most.at[i] = none ? 0.0f : -INFINITY;
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

struct MaxShares {
  CsrPointers matrix;
  std::int64_t width;
  const float *x, *best, *gradient;
  float* share;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t place = row * width + column;
    const auto most = load<N>(best + place);
    Channels<N> tied{};
    for_entries(matrix, row, [&](float weight, std::int64_t source) {
      const auto term = load<N>(x + source * width + column);
#pragma unroll
      for (int i = 0; i < N; ++i) tied.at[i] += term.at[i] == most.at[i] ? weight : 0.0f;
    });
    auto part = load<N>(gradient + place);
#pragma unroll
    for (int i = 0; i < N; ++i) part.at[i] = tied.at[i] > 0 ? part.at[i] / tied.at[i] : 0.0f;
    store(share + place, part);
  }
};

struct MaxGradient {
  CsrPointers transposed;
  std::int64_t width;
  const float *x, *best, *share;
  float* y;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto own = load<N>(x + row * width + column);
    Channels<N> sum{};
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

// blockDim.x threads share a row's channels, N each, so that loads are coalesced; blockDim.y rows
// make a block, so that short rows fill it too.
template <int N, typename Work>
__global__ void for_rows(std::int64_t rows, std::int64_t width, Work work) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.y,
                     across = static_cast<std::int64_t>(blockDim.x) * N;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       row < rows; row += stride) {
    for (std::int64_t column = static_cast<std::int64_t>(threadIdx.x) * N; column < width;
         column += across) {
      work.template run<N>(row, column);
    }
  }
}

template <int N, typename Work>
void launch(std::int64_t rows, std::int64_t width, const Work& work, CUstream_st* stream) {
  if (rows == 0 || width == 0) return;
  unsigned across = 1;
  while (across < kThreads && across < width / N) across *= 2;
  const dim3 block(across, kThreads / across);
  const std::int64_t blocks = (rows + block.y - 1) / block.y;
  const dim3 grid(static_cast<unsigned>(std::min(blocks, kMaxBlocks)));
  const auto kernel = for_rows<N, Work>;
  TPUDIST_LAUNCH(kernel, grid, block, stream, rows, width, work);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    throw Error(ErrorKind::failed,
                std::string("CUDA refused a sparse kernel: ") + cudaGetErrorString(status));
  }
}

template <typename... Pointers>
bool aligned16(Pointers*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

template <typename Work>
void launch_floats(std::int64_t rows, std::int64_t width, bool aligned, const Work& work,
                   CUstream_st* stream) {
  if (aligned && width % 4 == 0) return launch<4>(rows, width, work, stream);
  launch<1>(rows, width, work, stream);
}

template <typename Out>
void launch_sum(const CsrPointers& matrix, std::int64_t width, const float* x, Out* y,
                CUstream_st* stream) {
  const Sum<Out> work{matrix, width, x, y};
  const bool aligned = aligned16(x, y);
  if constexpr (!std::is_same_v<Out, float>) {
    if (aligned && width % 8 == 0) return launch<8>(matrix.rows, width, work, stream);
  }
  launch_floats(matrix.rows, width, aligned, work, stream);
}

}  // namespace

void launch_aggregate(const CsrPointers& matrix, std::int64_t width, const float* x, float* y,
                      CUstream_st* stream) {
  launch_sum(matrix, width, x, y, stream);
}

void launch_aggregate(const CsrPointers& matrix, std::int64_t width, const float* x,
                      __nv_bfloat16* y, CUstream_st* stream) {
  launch_sum(matrix, width, x, y, stream);
}

void launch_max(const CsrPointers& matrix, std::int64_t width, const float* x, float* best,
                CUstream_st* stream) {
  launch_floats(matrix.rows, width, aligned16(x, best), Max{matrix, width, x, best}, stream);
}

void launch_max_shares(const CsrPointers& matrix, std::int64_t width, const float* x,
                       const float* best, const float* gradient, float* share,
                       CUstream_st* stream) {
  launch_floats(matrix.rows, width, aligned16(x, best, gradient, share),
                MaxShares{matrix, width, x, best, gradient, share}, stream);
}

void launch_max_gradient(const CsrPointers& transposed, std::int64_t width, const float* x,
                         const float* best, const float* share, float* y, CUstream_st* stream) {
  launch_floats(transposed.rows, width, aligned16(x, best, share, y),
                MaxGradient{transposed, width, x, best, share, y}, stream);
}

}  // namespace tpudist
