#pragma once

#include <cstdint>
#include <vector>

#include "data/hlo/hlo_module.hpp"
#include "data/hlo/text_cursor.hpp"

namespace tpudist {

// Values in an HLO text on which features depend. Missing parts have XLA's defaults.

inline constexpr std::int64_t kTupleType = 13, kBufferType = 34;  // xla.PrimitiveType

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// f32[2,3]{1,0}, a buffer b(f32[2,3]{1,0}), or a tuple of such shapes.
HloShape read_shape(TextCursor& from, std::size_t depth = 0);
// {size=3x3 stride=2x2 pad=0_1x0_1}
HloWindow read_window(TextCursor& from);
// 0_1x2_3: low and high; a third number is the padding between elements.
void read_padding(TextCursor& from, std::vector<std::int64_t>& low,
                  std::vector<std::int64_t>& high);
// b01f_01io->b01f
HloConvolution read_convolution(TextCursor& from);
// {[0:3], [1:9:2]}
void read_slice(TextCursor& from, HloInstruction& to);

}  // namespace tpudist
