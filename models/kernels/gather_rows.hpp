#pragma once

#include <cstdint>

struct CUstream_st;

namespace tpudist {

// y[i] = x[index[i]], or x[i] if `index` is null; with `add` it is added to y[i]. y is [rows,
// width], T float or double. Like the launch functions of aggregate.hpp.
template <typename T>
void launch_take(const std::int32_t* index, std::int64_t rows, std::int64_t width, const T* x,
                 bool add, T* y, CUstream_st* stream);

}  // namespace tpudist
