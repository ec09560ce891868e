#pragma once

#include <cstdint>

struct CUstream_st;

namespace tpudist {

// What ranks do with their rows of gradients in the memory of a device. Otherwise like the launch
// functions of aggregate.hpp.

// Adds up leaves in the plan's order of additions, one thread for an element. `leaves`
// [slots, length] is overwritten; `sums` is [members, length], zero for a member without leaves.
// `plan` holds [members + 1] where a member's additions begin, [members] the slot of its sum or -1,
// and for each addition the two slots that are added, into the first one. No slot is used by two
// members.
void launch_leaf_sums(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                      float* sums, CUstream_st* stream);

// Copies `count` rows of `length` into slices [ranks, count, slice] or back. Rank r has elements
// [r slice, (r + 1) slice) of every row; what lies behind the row is zero, ranks x slice >= length.
// `row_of` [count] are the rows in their order in the slices.
void launch_rows_to_slices(std::int64_t count, std::int64_t length, int ranks, std::int64_t slice,
                           const std::int32_t* row_of, const float* rows, float* slices,
                           CUstream_st* stream);
void launch_slices_to_rows(std::int64_t count, std::int64_t length, std::int64_t slice,
                           const float* slices, float* rows, CUstream_st* stream);

// rows[row_of[i]][at] = values[i] for `count` rows of `length`.
void launch_put_values(std::int64_t count, const std::int32_t* row_of, const float* values,
                       std::int64_t length, std::int64_t at, float* rows, CUstream_st* stream);

}  // namespace tpudist
