#pragma once

#include <string>
#include <vector>

namespace tpudist {

// Values in rows and columns as shades of one colour, with the numbers written in.
struct HeatMap {
  std::string label;  // what it is, for readers of the screen
  std::string row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // [rows][columns] NaN: none
  // Values of the lightest and the darkest shade, for several maps beside each other; equal: those of
  // this one.
  double low = 0, high = 0;

  // As SVG of this width in pixels; empty where there are no cells.
  std::string svg(double width) const;
};

}  // namespace tpudist
