#include "results/report/charts/scatter_chart.hpp"

#include <fmt/format.h>

#include "results/report/charts/plot_area.hpp"

namespace tpudist {

std::string ScatterChart::svg(double width) const {
  if (x.empty()) return {};
  PlotArea area{.left = 52,
                .top = 8,
                .right = width - 12,
                .bottom = 0,
                .x = linear_axis(0, 1, 6),
                .y = linear_axis(0, 1, 6)};
  area.bottom = area.top + (area.right - area.left);
  SvgCanvas canvas(width, area.bottom + 42, label);
  draw_axes(canvas, area, x_name, y_name);
  canvas.line(area.at(0, 0), area.at(1, 1), "identity");
  for (std::size_t i = 0; i < x.size(); ++i)
    canvas.circle(area.at(x[i], y[i]), 2.2, fmt::format("dot f{}", colour));
  return canvas.finish();
}

}  // namespace tpudist
