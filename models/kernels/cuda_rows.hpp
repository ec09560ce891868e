#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "models/kernels/aggregate.hpp"
#include "models/kernels/cuda_launch.hpp"

// Common to the .cu files of this folder: a kernel in which one thread computes each element of
// [rows, width] of one member alone and in a fixed order. Threads use no atomics and share nothing,
// so the bits do not depend on the grid.

namespace tpudist::cuda_rows {

inline constexpr int kThreads = 256;
inline constexpr std::int64_t kMaxBlocks = 1 << 20;

// N neighbouring channels of a row, for one thread.
template <typename T, int N>
struct Channels {
  T at[N];
};

template <int N, typename T>
__device__ Channels<T, N> load(const T* from) {
  static_assert(N == 1);
  return {{__ldg(from)}};
}

template <int N>
__device__ Channels<float, N> load(const float* from) {
  Channels<float, N> x;
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

template <int N, typename T>
__device__ void store(T* to, const Channels<T, N>& x) {
  static_assert(N == 1);
  *to = x.at[0];
}

template <int N>
__device__ void store(float* to, const Channels<float, N>& x) {
  if constexpr (N == 1) {
    *to = x.at[0];
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      *reinterpret_cast<float4*>(to + i) = {x.at[i], x.at[i + 1], x.at[i + 2], x.at[i + 3]};
    }
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

// For Work::select: turns planes to those of a member.
template <typename... Some>
__device__ void move_to(std::int64_t member, Some&... planes) {
  ((planes.data += member * planes.distance), ...);
}

// Work::run<N>(row, column) computes N channels of a row of the selected member's result.
// blockDim.x threads share a row's channels, so that loads are coalesced; blockDim.y rows form a
// block, so that short rows fill it too; blockIdx.y is the member.
template <int N, typename Work>
__global__ void for_rows(std::int64_t rows, std::int64_t width, Work work) {
  work.select(blockIdx.y);
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

// Starts `work` on all elements of [rows, width] of every member; N must divide the width. Without
// elements nothing is launched.
template <int N, typename Work>
void launch(std::int64_t rows, Columns columns, const Work& work, CUstream_st* stream) {
  const auto [width, members] = columns;
  if (rows == 0 || width == 0 || members == 0) return;
  // As few threads as take a row in so many turns, so that none is idle in the last one.
  const std::int64_t vectors = width / N, turns = (vectors + kThreads - 1) / kThreads;
  const auto across = static_cast<unsigned>((vectors + turns - 1) / turns);
  const dim3 block(across, kThreads / across);
  const std::int64_t blocks = (rows + block.y - 1) / block.y;
  const dim3 grid(static_cast<unsigned>(std::min(blocks, kMaxBlocks)),
                  static_cast<unsigned>(members));
  const auto kernel = for_rows<N, Work>;
  TPUDIST_LAUNCH(kernel, grid, block, stream, rows, width, work);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    throw Error(ErrorKind::failed,
                std::string("CUDA refused a kernel: ") + cudaGetErrorString(status));
  }
}

template <typename... T>
bool aligned16(Planes<T>... planes) {
  return ((reinterpret_cast<std::uintptr_t>(planes.data) % 16 == 0 &&
           planes.distance * sizeof(T) % 16 == 0) &&
          ...);
}

// Four channels per thread if all matrices of T are float32 and suitably aligned, otherwise one.
template <typename T, typename Work>
void launch_wide(std::int64_t rows, Columns columns, bool aligned, const Work& work,
                 CUstream_st* stream) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (aligned && columns.width % 4 == 0) return launch<4>(rows, columns, work, stream);
  }
  launch<1>(rows, columns, work, stream);
}

}  // namespace tpudist::cuda_rows
