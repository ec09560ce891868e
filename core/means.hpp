#pragma once

#include <span>
#include <vector>

namespace tpudist {

// Sums run from front to back, so equal values give equal bits.

// NaN where there are no values.
double mean(std::span<const double> values);
// Mean of the values that are not NaN; NaN where there are none.
double mean_of_known(std::span<const double> values);
// Sum of squared differences from `centre`.
double squares_around(std::span<const double> values, double centre);
// Mean of the middle two of an even number of values. There must be one, and none may be NaN.
double median(std::vector<double> values);

}  // namespace tpudist
