#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "core/failed_device.hpp"
#include "models/kernels/cuda_launch.hpp"
#include "models/kernels/row_launches.hpp"

// Common to the .cu files of this folder: a kernel in which one thread computes each element of
// [rows, width] of one member alone and in a fixed order. Threads use no atomics and share nothing,
// so the bits do not depend on the grid. nvcc contracts no product and sum to one rounding
// (-fmad=false), so that a kernel gives the bits of its emulation on the CPU, exp apart.

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

// Calls take(weight, source) for the entries first .. last - 1, in order. The loop is unrolled, so
// that several sources are loaded at a time.
template <typename Take>
__device__ void for_entries(const CsrPointers& matrix, std::int64_t first, std::int64_t last,
                            const Take& take) {
#pragma unroll 4
  for (std::int64_t e = first; e < last; ++e) {
    take(matrix.weight ? __ldg(matrix.weight + e) : 1.0f,
         static_cast<std::int64_t>(__ldg(matrix.source + e)));
  }
}
// The same for the entries of a row.
template <typename Take>
__device__ void for_entries(const CsrPointers& matrix, std::int64_t row, const Take& take) {
  for_entries(matrix, matrix.begin[row], matrix.begin[row + 1], take);
}

// For Work::select: moves the planes to those of one member.
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
  // The fewest threads that take a row in `turns` turns, so that none is idle in the last.
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
    device_has_failed = true;
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

// A Step computes something from the entries of each row of a matrix:
//   start<N>(row, column)               a state: Sums<Number, kNumbers, N>, or derived from it
//   add(state, weight, source, column)  for every entry, in order
//   merge(state, part)                  for the Sums of every chunk of a long row, in order
//   finish(state, row, column)          writes the result
template <typename Number, int kNumbers, int N>
struct Sums {
  Channels<Number, N> of[kNumbers];
};

// The base of a Step that adds up its sums.
template <typename T, int kCount>
struct AddedUp {
  using Number = T;
  static constexpr int kNumbers = kCount;
  template <typename State, int N>
  __device__ void merge(State& state, const Sums<Number, kNumbers, N>& part) const {
#pragma unroll
    for (int k = 0; k < kNumbers; ++k) {
#pragma unroll
      for (int i = 0; i < N; ++i) state.of[k].at[i] += part.of[k].at[i];
    }
  }
};

// The first launch of a step: the chunks of long rows, since they take longest, then all other
// rows.
template <typename Step>
struct Walk {
  using Number = typename Step::Number;
  CsrPointers matrix;
  std::int64_t width;
  Step step;
  Planes<Number> parts;

  __device__ void select(std::int64_t member) {
    step.select(member);
    move_to(member, parts);
  }
  template <int N>
  __device__ void run(std::int64_t i, std::int64_t column) const {
    const LongRowPointers& split = matrix.long_rows;
    const bool is_chunk = i < split.chunks;
    const std::int64_t row = is_chunk ? split.chunk_row[i] : i - split.chunks,
                       first = is_chunk ? split.chunk_begin[i] : matrix.begin[row];
    std::int64_t last = matrix.begin[row + 1];
    if (split.chunks > 0 && last - first > split.length) {
      if (!is_chunk) return;
      last = first + split.length;
    }
    auto state = step.template start<N>(row, column);
    for_entries(matrix, first, last, [&](float weight, std::int64_t source) {
      step.add(state, weight, source, column);
    });
    if (!is_chunk) return step.finish(state, row, column);
#pragma unroll
    for (int k = 0; k < Step::kNumbers; ++k)
      store(parts + (k * split.chunks + i) * width + column, state.of[k]);
  }
};

// The second launch: the long rows from their chunks.
template <typename Step>
struct WalkOfChunks {
  using Number = typename Step::Number;
  LongRowPointers split;
  std::int64_t width;
  Step step;
  Planes<const Number> parts;

  __device__ void select(std::int64_t member) {
    step.select(member);
    move_to(member, parts);
  }
  template <int N>
  __device__ void run(std::int64_t i, std::int64_t column) const {
    const std::int64_t row = split.row[i], last = split.begin[i + 1];
    auto state = step.template start<N>(row, column);
#pragma unroll 4
    for (std::int64_t chunk = split.begin[i]; chunk < last; ++chunk) {
      Sums<Number, Step::kNumbers, N> part;
#pragma unroll
      for (int k = 0; k < Step::kNumbers; ++k)
        part.of[k] = load<N>(parts + (k * split.chunks + chunk) * width + column);
      step.merge(state, part);
    }
    step.finish(state, row, column);
  }
};

// Two steps; the second uses what the first wrote for its row.
template <typename First, typename Second>
struct WalkTwice {
  Walk<First> first;
  Walk<Second> second;

  __device__ void select(std::int64_t member) {
    first.select(member);
    second.select(member);
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    first.template run<N>(row, column);
    second.template run<N>(row, column);
  }
};

// Runs a step for all rows of the matrix. `aligned`: all matrices but `parts`, as for launch_wide.
template <typename Step>
void launch_walk(const CsrPointers& matrix, Columns columns, bool aligned, const Step& step,
                 Planes<typename Step::Number> parts, CUstream_st* stream) {
  using Number = typename Step::Number;
  const LongRowPointers& split = matrix.long_rows;
  aligned = aligned && aligned16(parts);
  launch_wide<Number>(split.chunks + matrix.rows, columns, aligned,
                      Walk<Step>{matrix, columns.width, step, parts}, stream);
  launch_wide<Number>(split.rows, columns, aligned,
                      WalkOfChunks<Step>{split, columns.width, step, parts}, stream);
}

// The same for two steps: in one launch, or in four if rows are long.
template <typename First, typename Second>
void launch_walk_twice(const CsrPointers& matrix, Columns columns, const First& first,
                       const Second& second, Planes<double> parts, CUstream_st* stream) {
  if (matrix.long_rows.rows == 0) {
    launch<1>(matrix.rows, columns,
              WalkTwice<First, Second>{{matrix, columns.width, first, {}},
                                       {matrix, columns.width, second, {}}},
              stream);
    return;
  }
  launch_walk(matrix, columns, false, first, parts, stream);
  launch_walk(matrix, columns, false, second, parts, stream);
}

}  // namespace tpudist::cuda_rows
