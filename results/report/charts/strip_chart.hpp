#pragma once

#include <string>
#include <vector>

namespace tpudist {

// A series drawn as one strip: its values are shades of one colour, from left to right.
struct Strip {
  std::string label;
  std::vector<double> values;  // in 0 .. 1; NaN: no value
  // Marked part of the strip, as shares 0 .. 1 of its length; none if equal.
  double marked_from = 0, marked_to = 0;
};

struct StripChart {
  std::string label;   // description for screen readers
  std::string x_name;  // of the direction along the strips
  std::vector<Strip> strips;

  // The chart as SVG of this width in pixels; empty without strips.
  std::string svg(double width) const;
};

}  // namespace tpudist
