#pragma once

#include <string_view>

#include "report/charts/axis.hpp"
#include "report/charts/svg_canvas.hpp"

namespace tpudist {

// The part of a drawing that values are plotted into.
struct PlotArea {
  double left = 0, top = 0, right = 0, bottom = 0;  // pixels
  Axis x, y;

  SvgPoint at(double x_value, double y_value) const;
};

// Grid lines, ticks with their labels below and to the left, and the names of both axes. A name that is
// empty is left out, and so are the ticks of an axis that has none.
void draw_axes(SvgCanvas& canvas, const PlotArea& area, std::string_view x_name,
               std::string_view y_name);

// Room that the labels of a vertical axis take, in pixels.
double label_width(const Axis& axis);

}  // namespace tpudist
