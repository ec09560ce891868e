#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tpudist {

struct ChartInterval {
  double low = 0, high = 0;
};

// A line of an IntervalChart.
struct IntervalRow {
  std::string label;
  double value = 0;                            // NaN: none
  int colour = 1;                              // 1 to 6
  std::optional<ChartInterval> interval = {};  // of the value, a heavy line
  std::optional<ChartInterval> wider = {};     // a further one, thin
  std::vector<double> dots = {};               // small, behind the value; NaN are left out
  std::optional<double> second = {};           // a square beside the value
  std::optional<double> limit = {};            // a mark of its own, such as a noise ceiling
  std::optional<ChartInterval> limit_interval = {};
  std::string title = {};  // shown under a resting pointer
};

// Values side by side, each with its interval: as points, or as bars from 0.
struct IntervalChart {
  std::string label;  // what it is, for readers of the screen
  std::string x_name;
  bool bars = false;
  std::vector<IntervalRow> rows;

  // As SVG of this width in pixels; empty where there is no row. On narrow drawings labels stand above
  // their rows.
  std::string svg(double width) const;
};

}  // namespace tpudist
