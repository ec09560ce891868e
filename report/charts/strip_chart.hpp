#pragma once

#include <string>
#include <vector>

namespace tpudist {

// A series as one strip: its values from left to right as shades of one colour.
struct Strip {
  std::string label;
  std::vector<double> values;  // in 0 .. 1; NaN: none
  // Part of the strip that is marked, as shares 0 .. 1 of its length; none where equal.
  double marked_from = 0, marked_to = 0;
};

struct StripChart {
  std::string label;   // what it is, for readers of the screen
  std::string x_name;  // of the direction of the strips
  std::vector<Strip> strips;

  // As SVG of this width in pixels; empty where there is no strip.
  std::string svg(double width) const;
};

}  // namespace tpudist
