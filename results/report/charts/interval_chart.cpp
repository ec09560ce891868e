#include "results/report/charts/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "results/report/charts/plot_area.hpp"
#include "results/report/charts/svg_canvas.hpp"

namespace tpudist {
namespace {

Axis axis_of(const IntervalChart& chart, int ticks) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto add = [&](double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value), high = std::max(high, value);
  };
  for (const IntervalChart::Row& row : chart.rows) {
    add(row.value);
    for (const double dot : row.dots) add(dot);
    for (const auto& interval : {row.interval, row.wider, row.limit_interval}) {
      if (interval) add(interval->low), add(interval->high);
    }
    if (row.limit) add(*row.limit);
    if (row.second) add(*row.second);
  }
  if (chart.bars || chart.zero) add(0);
  return linear_axis(low, high, ticks);
}

void draw_span(SvgCanvas& canvas, const PlotArea& area, const ChartInterval& interval, double y,
               const std::string& style) {
  const double from = area.at(interval.low, 0).x, to = area.at(interval.high, 0).x;
  canvas.line({from, y}, {to, y}, style);
  for (const double x : {from, to}) canvas.line({x, y - 3}, {x, y + 3}, style);
}

void draw_mark(SvgCanvas& canvas, SvgCanvas::Point at, const IntervalChart::Row& row) {
  const std::string style = fmt::format("point f{}", row.colour);
  if (row.square) {
    canvas.rectangle({at.x - 5, at.y - 5}, 10, 10, style, 1, row.title);
  } else {
    canvas.circle(at, 5, style, row.title);
  }
}

void draw_row(SvgCanvas& canvas, const PlotArea& area, const IntervalChart::Row& row, double y,
              bool bar) {
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
  if (!bar && std::isfinite(row.value)) draw_mark(canvas, {area.at(row.value, 0).x, y}, row);
  if (row.second) {
    canvas.rectangle({area.at(*row.second, 0).x - 4, y - 4}, 8, 8,
                     fmt::format("second f{}", row.second_colour), 1, row.title);
  }
}

}  // namespace

std::string IntervalChart::svg(double width) const {
  if (rows.empty()) return {};
  constexpr double kCharacter = 7.2;
  const bool narrow = width < 500;
  std::size_t longest = 0, longest_text = 0;
  for (const IntervalChart::Row& row : rows) {
    longest = std::max(longest, row.label.size());
    longest_text = std::max(longest_text, row.text.size());
  }
  // Labels that would take half of the drawing are put above their rows, as on narrow drawings.
  const bool above = narrow || kCharacter * static_cast<double>(longest) > width / 2 - 18;
  const auto most = static_cast<std::size_t>((width - 20) / kCharacter);
  const double gutter = above ? 10 : kCharacter * static_cast<double>(longest) + 18,
               text_room =
                   longest_text > 0 ? kCharacter * static_cast<double>(longest_text) + 8 : 0;
  const auto height_of = [&](const IntervalChart::Row& row) {
    const double own = row.label.empty() ? 17 : above ? 38 : 26;
    return own + (row.heading.empty() ? 0 : 24);
  };
  PlotArea area{.left = gutter,
                .top = 8,
                .right = width - 16 - text_room,
                .bottom = 0,
                .x = axis_of(*this, narrow ? 5 : 8),
                .y = {}};
  area.bottom = area.top + 4;
  for (const IntervalChart::Row& row : rows) area.bottom += height_of(row);
  SvgCanvas canvas(width, area.bottom + 44, label);
  draw_axes(canvas, area, x_name, "");
  if (zero) {
    const double x = area.at(0, 0).x;
    canvas.line({x, area.top}, {x, area.bottom}, "identity");
  }
  double top = area.top;
  for (const IntervalChart::Row& row : rows) {
    const double end = top + height_of(row);
    if (!row.heading.empty()) {
      canvas.text({4, top + 17}, TextAnchor::start, "rowname strongtext",
                  shortened(row.heading, most), row.heading.size() > most ? row.heading : "");
      top += 24;
    }
    const bool label_above = above && !row.label.empty();
    const double y = label_above ? top + 27 : (top + end) / 2 + 2;
    if (!row.label.empty()) {
      canvas.text(label_above ? SvgCanvas::Point{area.left, top + 14}
                              : SvgCanvas::Point{area.left - 10, y + 4},
                  label_above ? TextAnchor::start : TextAnchor::end, "rowname",
                  shortened(row.label, most), row.label.size() > most ? row.label : "");
    }
    draw_row(canvas, area, row, y, bars);
    if (!row.text.empty()) canvas.text({width - 4, y + 4}, TextAnchor::end, "rowname", row.text);
    top = end;
  }
  return canvas.finish();
}

}  // namespace tpudist
