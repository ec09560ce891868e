#include "report/charts/interval_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/charts/markup.hpp"
#include "report/charts/plot_area.hpp"

namespace tpudist {
namespace {

Axis axis_of(const IntervalChart& chart, int ticks) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto add = [&](double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value), high = std::max(high, value);
  };
  for (const IntervalRow& row : chart.rows) {
    add(row.value);
    for (const double dot : row.dots) add(dot);
    for (const auto& interval : {row.interval, row.wider, row.limit_interval}) {
      if (interval) add(interval->low), add(interval->high);
    }
    if (row.limit) add(*row.limit);
    if (row.second) add(*row.second);
  }
  if (chart.bars) add(0);
  return linear_axis(low, high, ticks);
}

void draw_span(SvgCanvas& canvas, const PlotArea& area, const ChartInterval& interval, double y,
               const std::string& style) {
  const double from = area.at(interval.low, 0).x, to = area.at(interval.high, 0).x;
  canvas.line({from, y}, {to, y}, style);
  for (const double x : {from, to}) canvas.line({x, y - 3}, {x, y + 3}, style);
}

void draw_row(SvgCanvas& canvas, const PlotArea& area, const IntervalRow& row, double y, bool bar) {
  if (row.limit_interval) {
    const double from = area.at(row.limit_interval->low, 0).x,
                 to = area.at(row.limit_interval->high, 0).x;
    canvas.rectangle({from, y - 7}, to - from, 14, "limitband", 0.25);
  }
  if (row.limit) {
    const double x = area.at(*row.limit, 0).x;
    canvas.line({x, y - 8}, {x, y + 8}, "limit");
  }
  if (bar && std::isfinite(row.value)) {
    const double from = area.at(0, 0).x, to = area.at(row.value, 0).x;
    canvas.rectangle({std::min(from, to), y - 7}, std::abs(to - from), 14,
                     fmt::format("bar f{}", row.colour), 0.75, row.title);
  }
  for (const double dot : row.dots) {
    if (std::isfinite(dot))
      canvas.circle({area.at(dot, 0).x, y}, 3, fmt::format("dot f{}", row.colour));
  }
  if (row.wider) draw_span(canvas, area, *row.wider, y, fmt::format("span s{}", row.colour));
  if (row.interval)
    draw_span(canvas, area, *row.interval, y,
              bar ? "span ink" : fmt::format("span heavy s{}", row.colour));
  if (!bar && std::isfinite(row.value))
    canvas.circle({area.at(row.value, 0).x, y}, 5, fmt::format("point f{}", row.colour), row.title);
  if (row.second)
    canvas.rectangle({area.at(*row.second, 0).x - 4, y - 4}, 8, 8, "second f2", 1, row.title);
}

}  // namespace

std::string IntervalChart::svg(double width) const {
  if (rows.empty()) return {};
  const bool narrow = width < 500;
  const double step = narrow ? 38 : 26;
  std::size_t longest = 0;
  for (const IntervalRow& row : rows) longest = std::max(longest, row.label.size());
  const std::size_t most = narrow ? 52 : 40;
  const double gutter = narrow ? 10 : 7.2 * static_cast<double>(std::min(longest, most)) + 18;
  PlotArea area{.left = gutter,
                .top = 8,
                .right = width - 16,
                .bottom = 0,
                .x = axis_of(*this, narrow ? 5 : 8),
                .y = {}};
  area.bottom = area.top + step * static_cast<double>(rows.size()) + 4;
  SvgCanvas canvas(width, area.bottom + 44, label);
  draw_axes(canvas, area, x_name, "");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const IntervalRow& row = rows[i];
    const double top = area.top + step * static_cast<double>(i);
    const double y = narrow ? top + 27 : top + step / 2 + 2;
    canvas.text(narrow ? SvgPoint{area.left, top + 14} : SvgPoint{area.left - 10, y + 4},
                narrow ? TextAnchor::start : TextAnchor::end, "rowname", shortened(row.label, most),
                row.label.size() > most ? row.label : "");
    draw_row(canvas, area, row, y, bars);
  }
  return canvas.finish();
}

}  // namespace tpudist
