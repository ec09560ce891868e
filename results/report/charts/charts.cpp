#include "results/report/charts/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "results/report/charts/plot_area.hpp"
#include "results/report/charts/svg_canvas.hpp"

namespace tpudist {
namespace {

struct Shades {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  explicit Shades(const HeatMap& map) {
    if (map.high > map.low) {
      low = map.low, high = map.high;
      return;
    }
    for (const auto& row : map.values) {
      for (const double value : row) {
        if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
      }
    }
  }
  // Opacity, from 0.08 for the smallest value to 0.95 for the largest.
  double of(double value) const {
    return high > low ? 0.08 + 0.87 * (value - low) / (high - low) : 0.5;
  }
};

}  // namespace

std::string HeatMap::svg(double width) const {
  if (rows.empty() || columns.empty()) return {};
  std::size_t longest = row_name.size();
  for (const std::string& row : rows)
    longest = std::max(longest, std::min<std::size_t>(row.size(), 24));
  const double left = 6.6 * static_cast<double>(longest) + 16, top = 40;
  const auto count = static_cast<double>(columns.size());
  const double cell = std::min(90.0, (width - left - 4) / count), tall = 34;
  SvgCanvas canvas(width, top + tall * static_cast<double>(rows.size()) + 8, label);
  const Shades shades(*this);
  canvas.text({left + cell * count / 2, 14}, TextAnchor::middle, "name", column_name);
  canvas.text({left - 10, 32}, TextAnchor::end, "name", row_name);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    canvas.text({left + cell * (static_cast<double>(c) + 0.5), 32}, TextAnchor::middle, "tick",
                shortened(columns[c], static_cast<std::size_t>(std::max(2.0, cell / 7))));
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double y = top + tall * static_cast<double>(r);
    canvas.text({left - 10, y + tall / 2 + 4}, TextAnchor::end, "rowname", shortened(rows[r], 24));
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double value = values[r][c], x = left + cell * static_cast<double>(c);
      const std::string title =
          fmt::format("{} {}, {} {}: {}", row_name, rows[r], column_name, columns[c],
                      std::isfinite(value) ? fmt::format("{:.4f}", value) : "none");
      if (!std::isfinite(value)) {
        canvas.rectangle({x + 1, y + 1}, cell - 2, tall - 2, "nocell", 1, title);
        continue;
      }
      const double shade = shades.of(value);
      canvas.rectangle({x + 1, y + 1}, cell - 2, tall - 2, "f1", shade, title);
      if (cell >= 34) {
        canvas.text({x + cell / 2, y + tall / 2 + 4}, TextAnchor::middle,
                    shade > 0.6 ? "cell on" : "cell",
                    fmt::format("{:.{}f}", value, cell < 46 ? 2 : 3));
      }
    }
  }
  return canvas.finish();
}

}  // namespace tpudist
