#include "results/report/charts/plot_area.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tpudist {
namespace {

// The least of 1, 2, 5, 10 times a power of ten that is at least `value`.
double nice_step(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string tick_label(double value, double step) {
  if (std::abs(value) >= 1e7 || (value != 0 && std::abs(step) < 1e-6))
    return fmt::format("{:g}", value);
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

double Axis::place(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

Axis linear_axis(double low, double high, int most, bool widen) {
  if (!std::isfinite(low) || !std::isfinite(high)) low = 0, high = 1;
  if (low > high) std::swap(low, high);
  if (high - low <= 1e-12 * std::max(std::abs(low), std::abs(high)) || high == low) {
    const double half = low == 0 ? 0.5 : std::abs(low) * 0.1;
    low -= half, high += half;
  }
  Axis axis;
  double step = nice_step((high - low) / std::max(1, most - 1));
  if (widen) {
    // Widening to whole steps may give one tick more than fits.
    while (std::ceil(high / step - 1e-9) - std::floor(low / step + 1e-9) + 1 > most + 0.5 &&
           most >= 2 && step < 2 * (high - low))
      step = nice_step(step * 1.5);
    low = std::floor(low / step + 1e-9) * step;
    high = std::ceil(high / step - 1e-9) * step;
  }
  axis.low = low, axis.high = high;
  for (double n = std::ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; ++n) {
    const double tick = n * step + 0.0;  // no -0
    axis.ticks.push_back(tick);
    axis.labels.push_back(tick_label(tick, step));
  }
  return axis;
}

Axis log_axis(double low, double high, int most) {
  if (!(low > 0) || !std::isfinite(low)) low = 1;
  if (!(high > low) || !std::isfinite(high)) high = low * 10;
  Axis axis;
  axis.logarithmic = true;
  axis.low = low, axis.high = high;
  const auto fill = [&](const std::vector<double>& factors, int decades) {
    axis.ticks.clear();
    const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
    for (int power = first; std::pow(10, power) <= high * (1 + 1e-9); power += decades) {
      for (const double factor : factors) {
        const double tick = factor * std::pow(10, power);
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) axis.ticks.push_back(tick);
      }
    }
  };
  fill({1, 2, 5}, 1);
  for (int decades = 1; static_cast<int>(axis.ticks.size()) > most && decades < 400; ++decades)
    fill({1}, decades);
  for (const double tick : axis.ticks) axis.labels.push_back(fmt::format("{:g}", tick));
  return axis;
}

SvgCanvas::Point PlotArea::at(double x_value, double y_value) const {
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
