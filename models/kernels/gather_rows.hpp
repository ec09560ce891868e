#pragma once

#include <cstdint>

struct CUstream_st;

namespace tpudist {

// y[i] = x[index[i]], or x[i] where `index` is null; with `add` that is added to y[i]. y is
// [rows, width], T float or double. As the launch functions of aggregate.hpp.
template <typename T>
void launch_take(const std::int32_t* index, std::int64_t rows, std::int64_t width, const T* x,
                 bool add, T* y, CUstream_st* stream);

}  // namespace tpudist
