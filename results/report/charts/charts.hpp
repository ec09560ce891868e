#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tpudist {

// Charts as SVG. `label` describes a chart for screen readers. `svg` draws a chart at a width in
// pixels; its text is empty if there is nothing to draw.

struct ChartInterval {
  double low = 0, high = 0;
};

// Several values, each with its interval: as points, or as bars from 0.
struct IntervalChart {
  struct Row {
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

  std::string label, x_name;
  bool bars = false;
  bool zero = false;  // whether the axis includes 0, with a line at 0
  std::vector<Row> rows = {};

  // Narrow drawings have the labels above the rows.
  std::string svg(double width) const;
};

// Values against a number, such as the training step.
struct LineChart {
  // A line through values; values that are not finite interrupt it.
  struct Series {
    std::string name;     // shown on hover
    int colour = 1;       // 1 to 6
    bool strong = false;  // emphasised, e.g. a mean
    bool dashed = false;
    std::vector<double> x = {}, y = {};  // of equal length
  };
  // An area between two lines.
  struct Band {
    int colour = 1;
    std::vector<double> x = {}, low = {}, high = {};  // of equal length
  };

  std::string label, x_name, y_name;
  bool log_x = false;
  bool zero = false;  // whether the vertical axis begins at 0
  std::vector<Band> bands = {};
  std::vector<Series> lines = {};

  std::string svg(double width) const;
};

// Values in rows and columns as shades of one colour, with the numbers.
struct HeatMap {
  std::string label, row_name, column_name;
  std::vector<std::string> rows = {}, columns = {};
  std::vector<std::vector<double>> values = {};  // [rows][columns] NaN: none
  // Values of the lightest and the darkest shade, for maps that share a scale. If equal, the least
  // and the greatest value of this map.
  double low = 0, high = 0;

  std::string svg(double width) const;
};

}  // namespace tpudist
