#pragma once

#include <cstdint>

struct CUstream_st;

namespace tpudist {

// Adds up leaves in the order of each member's tree, in the plan's order of additions, one thread
// for an element. `leaves` [slots, length] is overwritten; `sums` is [members, length], zero for a
// member without leaves. `plan` holds [members + 1] where a member's additions begin, [members] the
// slot of its sum or -1, and for each addition the two slots that are added, into the first one. No
// slot is used by two members. All on the device. Otherwise like the launch functions of
// aggregate.hpp.
void launch_leaf_sums(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                      float* sums, CUstream_st* stream);

}  // namespace tpudist
