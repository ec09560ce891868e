#pragma once

#include <cstdint>

struct CUstream_st;

namespace tpudist {

// Dropout by Philox4x32-10 with the masks of drop_rows (models/operators/drop_rows.hpp), bit for bit:
// x and y are [rows, members, channels], T float or double. `row_keys` [rows] lies on the device,
// `member_keys` [members] on the host, and may change once the call has returned. As the launch
// functions of aggregate.hpp.
template <typename T>
void launch_drop(std::int64_t rows, std::int64_t members, std::int64_t channels, double rate,
                 const std::uint64_t* member_keys, std::uint32_t layer,
                 const std::uint64_t* row_keys, const T* x, T* y, CUstream_st* stream);

}  // namespace tpudist
