#include "results/report/charts/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "results/report/charts/plot_area.hpp"

namespace tpudist {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(const std::vector<double>& values, bool positive) {
    for (const double value : values) {
      if (!std::isfinite(value) || (positive && value <= 0)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
};

std::vector<SvgCanvas::Point> points_of(const PlotArea& area, const std::vector<double>& x,
                                        const std::vector<double>& y) {
  std::vector<SvgCanvas::Point> points;
  for (std::size_t i = 0; i < x.size(); ++i) points.push_back(area.at(x[i], y[i]));
  return points;
}

void draw_band(SvgCanvas& canvas, const PlotArea& area, const LineChart::Band& band) {
  std::vector<SvgCanvas::Point> outline;
  for (std::size_t i = 0; i < band.x.size(); ++i) {
    if (std::isfinite(band.high[i])) outline.push_back(area.at(band.x[i], band.high[i]));
  }
  for (std::size_t i = band.x.size(); i-- > 0;) {
    if (std::isfinite(band.low[i])) outline.push_back(area.at(band.x[i], band.low[i]));
  }
  if (outline.size() > 2) canvas.polygon(outline, fmt::format("band f{}", band.colour));
}

// The axis of x, or of y.
Axis axis_of(const LineChart& chart, bool of_x, int ticks) {
  const bool logarithmic = of_x && chart.log_x;
  Range range;
  for (const LineChart::Series& line : chart.lines) range.add(of_x ? line.x : line.y, logarithmic);
  for (const LineChart::Band& band : chart.bands) {
    range.add(of_x ? band.x : band.low, logarithmic);
    if (!of_x) range.add(band.high, logarithmic);
  }
  if (!of_x && chart.zero) range.low = std::min(range.low, 0.0);
  return logarithmic ? log_axis(range.low, range.high, ticks)
                     : linear_axis(range.low, range.high, ticks, !of_x);
}

}  // namespace

std::string LineChart::svg(double width) const {
  const bool drawable = std::ranges::any_of(lines, [](const LineChart::Series& line) {
    return std::ranges::any_of(line.y, [](double y) { return std::isfinite(y); });
  });
  if (!drawable) return {};
  const double height = width < 500 ? 240 : 320;
  PlotArea area{.left = 0,
                .top = 10,
                .right = width - 14,
                .bottom = height - 44,
                .x = axis_of(*this, true, width < 500 ? 5 : 9),
                .y = axis_of(*this, false, 6)};
  area.left = 28 + label_width(area.y);
  SvgCanvas canvas(width, height, label);
  draw_axes(canvas, area, x_name, y_name);
  for (const LineChart::Band& band : bands) draw_band(canvas, area, band);
  for (const bool strong : {false, true}) {
    for (const LineChart::Series& line : lines) {
      if (line.strong != strong) continue;
      canvas.polyline(points_of(area, line.x, line.y),
                      fmt::format("line s{}{}{}", line.colour, strong ? " strong" : " thin",
                                  line.dashed ? " dashed" : ""),
                      line.name);
    }
  }
  return canvas.finish();
}

}  // namespace tpudist
