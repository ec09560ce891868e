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
  // Values of the lightest and the darkest shade, to share a scale between maps; if equal, those of
  // this map.
  double low = 0, high = 0;

  // As SVG of this width in pixels; empty without cells.
  std::string svg(double width) const;
};

}  // namespace tpudist
