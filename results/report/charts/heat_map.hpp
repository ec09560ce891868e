#pragma once

#include <string>
#include <vector>

namespace tpudist {

// Values in rows and columns as shades of one colour, with the numbers.
struct HeatMap {
  std::string label;  // description for screen readers
  std::string row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // [rows][columns] NaN: none
  // Values of the lightest and the darkest shade, for maps that share a scale. If equal, the least
  // and the greatest value of this map.
  double low = 0, high = 0;

  // The map as SVG of this width in pixels; empty without cells.
  std::string svg(double width) const;
};

}  // namespace tpudist
