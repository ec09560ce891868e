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
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <type_traits>
#include <typeindex>

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

inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}

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

// What the launches of a kernel did: what was read through __ldg, of that float and double, and
// elements [rows, width] of all members, each of which one thread writes.
struct Work {
  std::int64_t launches = 0, read_bytes = 0, read_numbers = 0, elements = 0;
};
// By the type of the last argument, which says what a kernel of models/kernels computes. Only where
// `counts_work`.
inline std::map<std::type_index, Work> work_of;
inline std::mutex work_mutex;
inline std::atomic<bool> counts_work = false;
inline thread_local Work work;  // of the launch that runs

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

template <typename Last>
void add_work(dim3 grid, std::int64_t rows, std::int64_t width, const Last&) {
  const std::scoped_lock lock(work_mutex);
  Work& sum = work_of[typeid(Last)];
  ++sum.launches;
  sum.read_bytes += work.read_bytes;
  sum.read_numbers += work.read_numbers;
  sum.elements += rows * width * grid.y;
}
template <typename... Other>
void add_work(dim3, const Other&...) {}

// Runs kernel(arguments...) for each thread of each block.
template <typename Kernel, typename... Arguments>
void launch(Kernel kernel, dim3 grid, dim3 block, CUstream_st*, Arguments... arguments) {
  if (!is_valid(grid, block)) {
    last_error = cudaErrorInvalidConfiguration;
    return;
  }
  ++launches;
  work = {};
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
  if (counts_work) add_work(grid, arguments...);
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

inline float __fmaf_rn(float x, float y, float z) {
  return std::fma(x, y, z);
}

template <typename T>
T __ldg(const T* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % alignof(T) != 0) emulation::fail("misaligned load");
  emulation::work.read_bytes += sizeof(T);
  if (!std::is_integral_v<T>) emulation::work.read_numbers += sizeof(T) == sizeof(float4) ? 4 : 1;
  return *from;
}
