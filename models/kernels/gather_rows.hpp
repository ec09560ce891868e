#pragma once

#include <cstdint>

#include "models/kernels/aggregate.hpp"

namespace tpudist {

// y[i] = x[index[i]], or x[i] if `index` is null; with `add` it is added to y[i]. y is [rows,
// width] for each member, T float or double. Like the launch functions of aggregate.hpp.
template <typename T>
void launch_take(const std::int32_t* index, std::int64_t rows, Columns columns, Planes<const T> x,
                 bool add, Planes<T> y, CUstream_st* stream);

}  // namespace tpudist
