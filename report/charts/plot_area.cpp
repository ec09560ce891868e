#include "report/charts/plot_area.hpp"

#include <algorithm>

namespace tpudist {

SvgPoint PlotArea::at(double x_value, double y_value) const {
  return {left + (right - left) * x.place(x_value), bottom - (bottom - top) * y.place(y_value)};
}

void draw_axes(SvgCanvas& canvas, const PlotArea& area, std::string_view x_name,
               std::string_view y_name) {
  for (std::size_t i = 0; i < area.y.ticks.size(); ++i) {
    const double y = area.at(area.x.low, area.y.ticks[i]).y;
    canvas.line({area.left, y}, {area.right, y}, "grid");
    canvas.text({area.left - 6, y + 4}, TextAnchor::end, "tick", area.y.labels[i]);
  }
  for (std::size_t i = 0; i < area.x.ticks.size(); ++i) {
    const double x = area.at(area.x.ticks[i], area.y.low).x;
    canvas.line({x, area.top}, {x, area.bottom}, "grid");
    canvas.text({x, area.bottom + 16}, TextAnchor::middle, "tick", area.x.labels[i]);
  }
  canvas.line({area.left, area.bottom}, {area.right, area.bottom}, "axis");
  if (!x_name.empty())
    canvas.text({(area.left + area.right) / 2, area.bottom + 34}, TextAnchor::middle, "name",
                x_name);
  if (!y_name.empty()) canvas.upward_text({12, (area.top + area.bottom) / 2}, "name", y_name);
}

double label_width(const Axis& axis) {
  std::size_t most = 1;
  for (const auto& label : axis.labels) most = std::max(most, label.size());
  return 7.0 * static_cast<double>(most);
}

}  // namespace tpudist
