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
  std::string heading = {};  // on a line of its own above the row, of any length; may be empty
  std::string label;         // may be empty: same as the row above
  double value = 0;          // NaN: no value
  int colour = 1;            // 1 to 6; 0: grey
  bool square = false;       // shape of the value's mark
  std::optional<ChartInterval> interval = {};  // of the value, drawn as a heavy line
  std::optional<ChartInterval> wider = {};     // a second one, drawn as a thin line
  std::vector<double> dots = {};               // small, behind the value's mark; NaN are left out
  std::optional<double> second = {};           // a square beside the value
  int second_colour = 2;
  std::optional<double> limit = {};  // a separate mark, such as a noise ceiling
  std::optional<ChartInterval> limit_interval = {};
  std::string text = {};   // printed at the right end, such as the value
  std::string title = {};  // shown on hover
};

// Several values, each with its interval: as points, or as bars from 0.
struct IntervalChart {
  std::string label;  // description for screen readers
  std::string x_name;
  bool bars = false;
  bool zero = false;  // whether the axis includes 0, with a line at 0
  std::vector<IntervalRow> rows;

  // The chart as SVG of this width in pixels; empty without rows. Narrow drawings have the labels
  // above the rows.
  std::string svg(double width) const;
};

}  // namespace tpudist
