#pragma once

#include <cstdint>

#include "models/kernels/aggregate.hpp"

namespace tpudist {

// Rows x[index[i]], or x[i] if `index` is null.
template <typename T>
struct TakenRows {
  const std::int32_t* index;
  Planes<const T> x;
};

// y[i] = the sum of the rows that `count` > 0 terms take for i, added in their order. y is [rows,
// width] for each member, T float or double. Like the launch functions of aggregate.hpp.
template <typename T>
void launch_take(const TakenRows<T>* terms, int count, std::int64_t rows, Columns columns,
                 Planes<T> y, CUstream_st* stream);

}  // namespace tpudist
