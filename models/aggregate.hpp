#pragma once

#include <cstdint>

struct CUstream_st;

namespace tpudist {

// y[i] = sum over e in [begin[i], begin[i + 1]) of weight[e] * x[source[e]] on rows of `width`
// floats, all on the current CUDA device, asynchronously on `stream`. One thread adds one element's
// terms in the order of the entries: no atomics, the same bits in every run. No weights (null):
// all 1. Throws Error when the launch is refused. x and y must not overlap.
void launch_aggregate(const std::int64_t* begin, const std::int64_t* source, const float* weight,
                      std::int64_t rows, std::int64_t width, const float* x, float* y,
                      CUstream_st* stream);

}  // namespace tpudist
