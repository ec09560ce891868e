#pragma once

#include <array>
#include <cstdint>

#include "core/philox.hpp"

namespace tpudist {

// Philox4x32-10 (core/philox.hpp) of several counters, one for each lane. The counters differ only
// in the last word, and the lanes are computed together. bits[w][lane] is word w of a lane.
inline constexpr int kPhiloxLanes = 16;
using PhiloxWords = std::array<std::array<std::uint32_t, kPhiloxLanes>, 4>;
void philox(const std::array<std::uint32_t, 4>& counter, PhiloxKey key, PhiloxWords& bits);

// y[i] = x[i] * 0 where the 16 bits of words[i] that start at bit `shift` are below `limit`,
// otherwise x[i] * scale.
void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const float* x,
                float scale, int count, float* y);
void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const double* x,
                double scale, int count, double* y);

}  // namespace tpudist
