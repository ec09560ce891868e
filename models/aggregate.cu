#include "models/aggregate.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr int kThreads = 128;

// One block works on rows blockIdx.x, + gridDim.x, ...; its threads share the columns, so that
// loads are coalesced.
__global__ void aggregate(const std::int64_t* __restrict__ begin,
                          const std::int64_t* __restrict__ source, const float* __restrict__ weight,
                          std::int64_t rows, std::int64_t width, const float* __restrict__ x,
                          float* __restrict__ y) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t first = begin[row], last = begin[row + 1];
    for (std::int64_t c = blockIdx.y * kThreads + threadIdx.x; c < width;
         c += gridDim.y * kThreads) {
      float sum = 0;
      for (std::int64_t e = first; e < last; ++e) sum += weight[e] * x[source[e] * width + c];
      y[row * width + c] = sum;
    }
  }
}

}  // namespace

void launch_aggregate(const std::int64_t* begin, const std::int64_t* source, const float* weight,
                      std::int64_t rows, std::int64_t width, const float* x, float* y,
                      CUstream_st* stream) {
  if (rows == 0 || width == 0) return;
  const dim3 grid(
      static_cast<unsigned>(std::min<std::int64_t>(rows, 1 << 20)),
      static_cast<unsigned>(std::min<std::int64_t>((width + kThreads - 1) / kThreads, 64)));
  aggregate<<<grid, kThreads, 0, stream>>>(begin, source, weight, rows, width, x, y);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    throw Error(ErrorKind::failed,
                std::string("CUDA refused the aggregation kernel: ") + cudaGetErrorString(status));
  }
}

}  // namespace tpudist
