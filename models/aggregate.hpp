#pragma once

#include <cstdint>

struct CUstream_st;
struct __nv_bfloat16;

namespace tpudist {

// A Csr on the current CUDA device. No weights (null): all 1.
struct CsrPointers {
  const std::int64_t* begin = nullptr;
  const std::int32_t* source = nullptr;
  const float* weight = nullptr;
  std::int64_t rows = 0;
};

// The kernels below run on rows of `width` floats on the current CUDA device, asynchronously on
// `stream`. One thread takes one element's terms in the order of the entries: no atomics, the same
// bits in every run. Throw Error when the launch is refused. What is written must not overlap what
// is read.

// y[i] = sum over e in [begin[i], begin[i + 1]) of weight[e] * x[source[e]], summed in float32.
void launch_aggregate(const CsrPointers& matrix, std::int64_t width, const float* x, float* y,
                      CUstream_st* stream);
// The same sum rounded to bfloat16 as it is written.
void launch_aggregate(const CsrPointers& matrix, std::int64_t width, const float* x,
                      __nv_bfloat16* y, CUstream_st* stream);

// best[i] = the largest x[source] over the entries of row i; 0 where there are none, NaN where one
// of them is.
void launch_max(const CsrPointers& matrix, std::int64_t width, const float* x, float* best,
                CUstream_st* stream);

// The first half of its backward pass: share[i] = gradient[i] / the sum of the weights of those
// sources that equal best[i]; 0 where none does.
void launch_max_shares(const CsrPointers& matrix, std::int64_t width, const float* x,
                       const float* best, const float* gradient, float* share, CUstream_st* stream);

// The second half, by the transposed matrix: y[i] = sum of weight * share[source] over the entries
// of row i whose best[source] x[i] is.
void launch_max_gradient(const CsrPointers& transposed, std::int64_t width, const float* x,
                         const float* best, const float* share, float* y, CUstream_st* stream);

}  // namespace tpudist
