#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// The filter of the 2nd place of "Fast or Slow?" for corrupted run times. Maps run times to (0, 1)
// by (t - min + 0.0005) / (max - min + 0.001), and cuts the measurements, in their order, into
// blocks of 100. Takes the Kullback-Leibler divergence (natural logarithm) of each block from the
// block before, both normalised to the sum 1, and smooths these values by a moving mean of 5, with
// zeros beyond both ends. Blocks of good measurements differ: a block is kept if the values on both
// sides (one at either end) are at least `threshold`. An unfinished block is dropped, and all
// blocks if less than a tenth of the values reach `threshold`.
//
// Returns [n] whether a measurement is kept. `times`: nanoseconds, in the order of measurement.
std::vector<bool> kept_by_entropy(std::span<const std::int64_t> times, double threshold);

}  // namespace tpudist
