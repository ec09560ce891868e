#pragma once

#include <cstdint>

struct CUstream_st;
struct __nv_bfloat16;

namespace tpudist {

// The arrays of a Csr in the memory of the current CUDA device, borrowed for a launch.
struct CsrPointers {
  const std::int64_t* begin = nullptr;   // [rows + 1]
  const std::int32_t* source = nullptr;  // [entries]
  const float* weight = nullptr;         // [entries]; null when every weight is 1
  std::int64_t rows = 0;
};

// The functions below start a kernel on `stream` of the current CUDA device and return at once.
// Matrices of rows are dense, `width` floats from row to row. One thread adds up one element's
// terms in the order of the entries, without atomics, so that the bits are the same in every run.
// What is written must not overlap what is read. They throw Error when the launch is refused.

// y[i] = sum over e in [begin[i], begin[i + 1]) of weight[e] * x[source[e]], summed in float32.
// y is [matrix.rows, width].
void launch_aggregate(const CsrPointers& matrix, std::int64_t width, const float* x, float* y,
                      CUstream_st* stream);
// The same sum rounded to bfloat16 as it is written.
void launch_aggregate(const CsrPointers& matrix, std::int64_t width, const float* x,
                      __nv_bfloat16* y, CUstream_st* stream);

// best[i] = the largest x[source] over the entries of row i, channel by channel; 0 where the row
// has no entries, NaN where one of the sources is NaN. The weights take no part. best is
// [matrix.rows, width].
void launch_max(const CsrPointers& matrix, std::int64_t width, const float* x, float* best,
                CUstream_st* stream);

// The first half of the backward pass of the maximum: share[i] = gradient[i] / sum of the weights
// of those sources that equal best[i]; 0 where none does. All three are [matrix.rows, width].
void launch_max_shares(const CsrPointers& matrix, std::int64_t width, const float* x,
                       const float* best, const float* gradient, float* share, CUstream_st* stream);

// The second half, by the transposed matrix: y[i] = sum of weight * share[source] over those
// entries of row i for which x[i] equals best[source]. y and x are [transposed.rows, width].
void launch_max_gradient(const CsrPointers& transposed, std::int64_t width, const float* x,
                         const float* best, const float* share, float* y, CUstream_st* stream);

}  // namespace tpudist
