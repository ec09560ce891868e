#include "models/aggregate.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;

__device__ inline float scaled(float weight, float x) {
  return weight * x;
}
__device__ inline float4 scaled(float weight, float4 x) {
  return {weight * x.x, weight * x.y, weight * x.z, weight * x.w};
}
__device__ inline void add(float& sum, float term) {
  sum += term;
}
__device__ inline void add(float4& sum, float4 term) {
  sum.x += term.x;
  sum.y += term.y;
  sum.z += term.z;
  sum.w += term.w;
}

// blockDim.x threads share a row's columns (of one or four floats), so that loads are coalesced;
// blockDim.y rows make a block, so that short rows fill it too.
template <typename Value>
__global__ void aggregate(const std::int64_t* __restrict__ begin,
                          const std::int64_t* __restrict__ source, const float* __restrict__ weight,
                          std::int64_t rows, std::int64_t columns, const Value* __restrict__ x,
                          Value* __restrict__ y) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += stride) {
    const std::int64_t first = begin[row], last = begin[row + 1];
    for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
      Value sum{};
      for (std::int64_t e = first; e < last; ++e) {
        add(sum, scaled(weight ? weight[e] : 1.0f, x[source[e] * columns + c]));
      }
      y[row * columns + c] = sum;
    }
  }
}

template <typename Value>
void launch(const std::int64_t* begin, const std::int64_t* source, const float* weight,
            std::int64_t rows, std::int64_t columns, const float* x, float* y,
            CUstream_st* stream) {
  unsigned across = 1;
  while (across < kThreads && across < columns) across *= 2;
  const dim3 block(across, kThreads / across);
  const std::int64_t blocks = (rows + block.y - 1) / block.y;
  aggregate<Value><<<static_cast<unsigned>(std::min(blocks, kMaxBlocks)), block, 0, stream>>>(
      begin, source, weight, rows, columns, reinterpret_cast<const Value*>(x),
      reinterpret_cast<Value*>(y));
}

bool aligned16(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

}  // namespace

void launch_aggregate(const std::int64_t* begin, const std::int64_t* source, const float* weight,
                      std::int64_t rows, std::int64_t width, const float* x, float* y,
                      CUstream_st* stream) {
  if (rows == 0 || width == 0) return;
  if (width % 4 == 0 && aligned16(x) && aligned16(y)) {
    launch<float4>(begin, source, weight, rows, width / 4, x, y, stream);
  } else {
    launch<float>(begin, source, weight, rows, width, x, y, stream);
  }
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    throw Error(ErrorKind::failed,
                std::string("CUDA refused the aggregation kernel: ") + cudaGetErrorString(status));
  }
}

}  // namespace tpudist
