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
  std::string heading = {};  // on a line of its own above the row, at any length; may be empty
  std::string label;         // may be empty: of the same thing as the row above
  double value = 0;          // NaN: none
  int colour = 1;            // 1 to 6; 0: grey
  bool square = false;       // the value's mark
  std::optional<ChartInterval> interval = {};  // of the value, a heavy line
  std::optional<ChartInterval> wider = {};     // a further one, thin
  std::vector<double> dots = {};               // small, behind the value; NaN are left out
  std::optional<double> second = {};           // a square beside the value
  int second_colour = 2;
  std::optional<double> limit = {};  // a mark of its own, such as a noise ceiling
  std::optional<ChartInterval> limit_interval = {};
  std::string text = {};   // printed at the right end, such as the value
  std::string title = {};  // shown under a resting pointer
};

// Values side by side, each with its interval: as points, or as bars from 0.
struct IntervalChart {
  std::string label;  // what it is, for readers of the screen
  std::string x_name;
  bool bars = false;
  bool zero = false;  // whether 0 is on the axis, with a line of its own
  std::vector<IntervalRow> rows;

  // As SVG of this width in pixels; empty where there is no row. On narrow drawings labels stand above
  // their rows.
  std::string svg(double width) const;
};

}  // namespace tpudist
