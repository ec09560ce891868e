#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// The filter of the 2nd place of "Fast or Slow?" for corrupted run times. The measurements in their
// order are cut into blocks of 100. Between a block and the one before stands the Kullback-Leibler
// divergence (natural logarithm) of their run times, each block's normalised to the sum 1, after
// run times were mapped to (0, 1) by (t - min + 0.0005) / (max - min + 0.001). These values are
// smoothed by a moving mean of 5, with zeros beyond both ends. Blocks of good measurements differ:
// a block is kept where the values on both its sides (one at either end) are at least `threshold`.
// An unfinished block goes, and all blocks where less than a tenth of the values reach it.
//
// [n] whether a measurement is kept. `times` in nanoseconds, in the order of measurement.
std::vector<bool> kept_by_entropy(std::span<const std::int64_t> times, double threshold);

}  // namespace tpudist
