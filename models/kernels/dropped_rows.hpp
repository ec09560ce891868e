#pragma once

#include <cstdint>

#include "models/kernels/aggregate.hpp"

namespace tpudist {

// Dropout by Philox4x32-10 with the same masks, bit for bit, as drop_rows
// (models/operators/drop_rows.hpp). x and y are [rows, channels] for each member, T float or
// double. `whole_rows`: Dropped::rows. `row_keys` [rows] is device memory. `member_keys` [members]
// is host memory and may change after the call has returned. One launch for each member. Otherwise
// like the launch functions of aggregate.hpp.
template <typename T>
void launch_drop(bool whole_rows, std::int64_t rows, Columns columns, double rate,
                 const std::uint64_t* member_keys, std::uint32_t layer,
                 const std::uint64_t* row_keys, Planes<const T> x, Planes<T> y,
                 CUstream_st* stream);

}  // namespace tpudist
