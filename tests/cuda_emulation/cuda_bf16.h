#pragma once

#include <cstdint>
#include <cstring>

#include "cuda_runtime.h"

struct __nv_bfloat16 {
  std::uint16_t bits;
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

// To the nearest, ties to even; every NaN becomes the one that CUDA makes of them.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>(bits >> 16)};
}

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
