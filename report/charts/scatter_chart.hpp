#pragma once

#include <string>
#include <vector>

namespace tpudist {

// Points in a square, with the line on which both numbers are equal.
struct ScatterChart {
  std::string label;  // what it is, for readers of the screen
  std::string x_name, y_name;
  int colour = 1;            // 1 to 6
  std::vector<double> x, y;  // of equal length, in 0 .. 1

  // As SVG of this width in pixels; empty where there is no point.
  std::string svg(double width) const;
};

}  // namespace tpudist
