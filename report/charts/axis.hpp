#pragma once

#include <string>
#include <vector>

namespace tpudist {

// A range of values with tick marks.
struct Axis {
  double low = 0, high = 1;  // low < high
  bool logarithmic = false;  // then low > 0
  std::vector<double> ticks;
  std::vector<std::string> labels;  // of the ticks

  // Position of a value: 0 at the low end, 1 at the high end, outside of 0 .. 1 beyond them.
  double place(double value) const;
};

// An axis over low .. high with at most `most` ticks (at least 2) at multiples of 1, 2 or 5 times a
// power of ten. With `widen` its ends are ticks. Equal or unusable ends give an axis of some width
// around them.
Axis linear_axis(double low, double high, int most, bool widen = true);

// The same for positive values, with ticks at 1, 2 and 5 times powers of ten, or at powers of ten.
Axis log_axis(double low, double high, int most);

}  // namespace tpudist
