#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/report/charts/svg_canvas.hpp"

namespace tpudist {

// A range of values with tick marks.
struct Axis {
  double low = 0, high = 1;  // low < high
  bool logarithmic = false;  // then low > 0
  std::vector<double> ticks;
  std::vector<std::string> labels;  // of the ticks

  // Position of a value: 0 at the low end, 1 at the high end; values outside lie outside of 0 .. 1.
  double place(double value) const;
};

// An axis over low .. high with at most `most` ticks (at least 2) at multiples of 1, 2 or 5 times a
// power of ten. `widen` moves the ends to ticks. Equal or unusable ends give an axis of some width.
Axis linear_axis(double low, double high, int most, bool widen = true);

// The same for positive values, with ticks at 1, 2 and 5 times powers of ten, or at powers of ten.
Axis log_axis(double low, double high, int most);

// The part of a drawing in which values are plotted.
struct PlotArea {
  double left = 0, top = 0, right = 0, bottom = 0;  // pixels
  Axis x, y;

  SvgCanvas::Point at(double x_value, double y_value) const;
};

// Draws grid lines, ticks with their labels below and to the left, and the names of both axes.
// Leaves out an empty name.
void draw_axes(SvgCanvas& canvas, const PlotArea& area, std::string_view x_name,
               std::string_view y_name);

// Width of a vertical axis's labels, in pixels.
double label_width(const Axis& axis);

}  // namespace tpudist
