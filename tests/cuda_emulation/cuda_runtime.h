#pragma once

// The part of CUDA that the kernels of this project use, on the CPU: a launch runs the kernel once
// for each thread of the grid, one thread after the other. There is no shared memory, no
// __syncthreads and no warp: kernels that need them do not compile.
//
// What a GPU refuses is refused: a launch that no device takes gives cudaErrorInvalidConfiguration,
// a misaligned vector load ends the program. Memory that a kernel may not touch is found by
// GuardedArray (guarded_array.hpp), and threads that write what others read by running them in both
// orders (emulation::Order).

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

using std::exp;
using std::isnan;
using std::sqrt;

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) float4 {
  float x, y, z, w;
};

struct CUstream_st;
using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0, cudaErrorInvalidConfiguration = 9;

namespace emulation {

// In which order the threads of a launch run.
enum class Order { forward, backward };
inline thread_local Order order = Order::forward;
inline thread_local cudaError_t last_error = cudaSuccess;
inline std::atomic<std::int64_t> launches = 0;  // of all threads

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "emulated CUDA: %s\n", what);
  std::abort();
}

// Of all devices that CUDA 13 knows.
inline bool is_valid(dim3 grid, dim3 block) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  return threads >= 1 && threads <= 1024 && block.z <= 64 && grid.x >= 1 && grid.x <= 2147483647u &&
         grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535;
}

// The place `index` in a box of this size, x first.
inline dim3 place_in(dim3 size, std::uint64_t index) {
  return {static_cast<unsigned>(index % size.x), static_cast<unsigned>(index / size.x % size.y),
          static_cast<unsigned>(index / size.x / size.y)};
}

// Runs kernel(arguments...) for each thread of each block.
template <typename Kernel, typename... Arguments>
void launch(Kernel kernel, dim3 grid, dim3 block, CUstream_st*, Arguments... arguments) {
  if (!is_valid(grid, block)) {
    last_error = cudaErrorInvalidConfiguration;
    return;
  }
  ++launches;
  gridDim = grid;
  blockDim = block;
  const std::uint64_t in_block = std::uint64_t{block.x} * block.y * block.z,
                      all = in_block * grid.x * grid.y * grid.z;
  for (std::uint64_t i = 0; i < all; ++i) {
    const std::uint64_t thread = order == Order::forward ? i : all - 1 - i;
    blockIdx = place_in(grid, thread / in_block);
    threadIdx = place_in(block, thread % in_block);
    kernel(arguments...);
  }
}

}  // namespace emulation

inline cudaError_t cudaGetLastError() {
  const cudaError_t error = emulation::last_error;
  emulation::last_error = cudaSuccess;
  return error;
}

inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "invalid configuration argument";
}

template <typename T>
T __ldg(const T* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % alignof(T) != 0) emulation::fail("misaligned load");
  return *from;
}
