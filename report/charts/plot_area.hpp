#pragma once

#include <string_view>

#include "report/charts/axis.hpp"
#include "report/charts/svg_canvas.hpp"

namespace tpudist {

// The part of a drawing in which values are plotted.
struct PlotArea {
  double left = 0, top = 0, right = 0, bottom = 0;  // pixels
  Axis x, y;

  SvgPoint at(double x_value, double y_value) const;
};

// Draws grid lines, ticks with their labels below and to the left, and the names of both axes. An
// empty name is left out, and so are the ticks of an axis without ticks.
void draw_axes(SvgCanvas& canvas, const PlotArea& area, std::string_view x_name,
               std::string_view y_name);

// Width of a vertical axis's labels, in pixels.
double label_width(const Axis& axis);

}  // namespace tpudist
