#pragma once

#include <string>
#include <vector>

namespace tpudist {

// Points in a square, with the diagonal on which both numbers are equal.
struct ScatterChart {
  std::string label;  // description for screen readers
  std::string x_name, y_name;
  int colour = 1;            // 1 to 6
  std::vector<double> x, y;  // of equal length, in 0 .. 1

  // The chart as SVG of this width in pixels; empty without points.
  std::string svg(double width) const;
};

}  // namespace tpudist
