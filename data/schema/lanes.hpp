#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace tpudist {

// A node's share in a violation ratio (docs/configuration.md, model.readout.violation_ratio).

// The largest dimensions, as bits; 0: no size is above 0. Takes 1 to 31 sizes.
inline std::int32_t largest_dimensions(std::span<const float> sizes) {
  const float most = std::ranges::max(sizes);
  std::int32_t bits = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (most > 0 && sizes[d] == most) bits |= 1 << d;
  }
  return bits;
}

// Whether dimension `lanes` >= 0, which lies along the lanes, is not among the largest.
inline bool violates(std::int32_t largest, int lanes) {
  return lanes >= 31 || ((largest >> lanes) & 1) == 0;
}

}  // namespace tpudist
