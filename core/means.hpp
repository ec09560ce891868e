#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tpudist {

// Means "no value".
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Sums run from front to back: the same values in the same order give the same bits.

bool all_finite(std::span<const double> values);
// NaN without values.
double mean(std::span<const double> values);
// Mean of the values that are not NaN; NaN without any.
double mean_of_known(std::span<const double> values);
// Sum of squared differences from `centre`.
double squares_around(std::span<const double> values, double centre);
// With the divisor n - 1. At least two values.
double sample_variance(std::span<const double> values);
// For an even number of values, the mean of the middle two. At least one value; no NaN.
double median(std::vector<double> values);
// numpy.quantile(values, q): between two values it is interpolated. `q` in 0 to 1; at least one
// value; no NaN.
double quantile(std::vector<double> values, double q);
// Ranks 1 .. n, the smallest value first; equal values share the mean of their ranks. No NaN.
std::vector<double> mean_ranks(std::span<const double> values);
// Ranks 0, 1, ...; equal values share a rank. No NaN.
std::vector<std::int32_t> dense_ranks(std::span<const double> values);

}  // namespace tpudist
