#pragma once

#include <cstdint>

struct CUstream_st;

namespace tpudist {

// The steps of an optimizer on flat buffers [M, P] in the memory of a device, with the bits of
// train/optimizer/ on the host. P is a multiple of 16. Otherwise like the functions of
// row_launches.hpp.

// The coefficients of one step for one group of a member's parameters.
struct StepCoefficients {
  float gradient_scale = 0;  // of the clip
  float shrink = 0;          // adamw: 1 - rate * decay
  float l2 = 0;              // adam: decay
  float one_minus_beta1 = 0;
  float beta2 = 0, one_minus_beta2 = 0;
  float root_of_correction2 = 0;  // sqrt(1 - beta2^t)
  float eps = 0;
  float minus_step_size = 0;    // -rate / (1 - beta1^t)
  std::int32_t takes_step = 0;  // 0: parameters and moments keep their bits
};

// Floats [begin, end) of a member, whole multiples of 16, which lie in one block of the norm, or in
// one tensor.
struct NormPart {
  std::int64_t begin = 0, end = 0, block = 0;
};
// The number of sums, side by side, that squares are added to.
inline constexpr std::int64_t kNormLanes = 8;
// Their squares, and their bits, each times an odd number of its own, modulo 2^64: a change of one
// number always changes `bits`.
struct LaneSums {
  double squares = 0;
  std::uint64_t bits = 0;
};

// Where 16 neighbouring floats of a member belong.
struct FlatPlace {
  std::int32_t group = 0;   // of their parameter
  std::int32_t placed = 0;  // where the first one lies in a row of the placed parameters
  std::int32_t tensor = 0;  // of the trained ones
};

struct MemberTotals {
  double loss = 0, norm = 0;  // of the gradient
  std::uint64_t bits = 0;     // of the gradient and the parameters
};
// `totals` [M]. A loss follows the gradient; members of `gradients` lie `stride` > P floats apart.
// `flat` [M, P]: the parameters. `parts` [count] are in ascending order, and `sums` [M, count,
// kNormLanes] is overwritten.
void launch_losses_and_norms(int members, std::int64_t length, const NormPart* parts,
                             std::int64_t count, const float* gradients, std::int64_t stride,
                             const float* flat, LaneSums* sums, MemberTotals* totals,
                             CUstream_st* stream);

// The buffers that a step changes.
struct SteppedBuffers {
  std::int64_t length = 0;                                     // P
  float *flat = nullptr, *first = nullptr, *second = nullptr;  // [M, P]
  float* placed = nullptr;  // [M, placed_length], another copy of the parameters
  std::int64_t placed_length = 0;
  const FlatPlace* places = nullptr;  // [P / 16]
};

// The clip of each tensor's gradient by its own norm, in place of `gradient_scale`.
struct TensorClip {
  double largest = 0;               // norm; 0: no such clip
  bool decay_clipped = false;       // `l2` is a part of the gradient that is clipped
  const NormPart* parts = nullptr;  // [count] in ascending order; their blocks are tensors
  std::int64_t count = 0, tensors = 0;
  LaneSums* sums = nullptr;  // [M, count, kNormLanes], overwritten
  float* scales = nullptr;  // [M, tensors], overwritten
};

// One step of Adam or AdamW (train/optimizer/optimizer.hpp). `coefficients`: [M, groups].
void launch_optimizer_step(int members, const SteppedBuffers& buffers, const float* gradients,
                           std::int64_t stride, const StepCoefficients* coefficients, int groups,
                           const TensorClip& clip, CUstream_st* stream);

// average += share (flat - average), [M, P]; `shares` [M], 0: the member's average keeps its bits.
void launch_average_point(int members, std::int64_t length, const float* shares, const float* flat,
                          float* average, CUstream_st* stream);

// Operations of ranks on their rows of gradients in device memory. Otherwise like the functions of
// row_launches.hpp.

// Adds up leaves in the order of the plan, one thread for each element. `leaves` [slots, length] is
// overwritten; `sums` is [members, length], zero for a member without leaves. `plan`: [members + 1]
// the beginning of each member's additions, [members] the slot of its sum or -1, and for each
// addition two slots, which are added into the first. Members share no slots.
void launch_leaf_sums(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                      float* sums, CUstream_st* stream);

// Copies `count` rows of `length` into slices [ranks, count, slice] or back. Of each row, rank r
// has elements [r slice, (r + 1) slice); they are zero past the row's end, and ranks x slice >=
// length. `row_of` [count]: the rows in the order of the slices.
void launch_rows_to_slices(std::int64_t count, std::int64_t length, int ranks, std::int64_t slice,
                           const std::int32_t* row_of, const float* rows, float* slices,
                           CUstream_st* stream);
void launch_slices_to_rows(std::int64_t count, std::int64_t length, std::int64_t slice,
                           const float* slices, float* rows, CUstream_st* stream);

// rows[row_of[i]][at] = values[i] for `count` rows of `length`.
void launch_put_values(std::int64_t count, const std::int32_t* row_of, const float* values,
                       std::int64_t length, std::int64_t at, float* rows, CUstream_st* stream);

}  // namespace tpudist
