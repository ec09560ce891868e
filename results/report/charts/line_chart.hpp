#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/report/charts/plot_area.hpp"

namespace tpudist {

// A line through values; values that are not finite interrupt it.
struct LineSeries {
  std::string name;     // shown on hover
  int colour = 1;       // 1 to 6
  bool strong = false;  // emphasised, e.g. a mean
  bool dashed = false;
  bool points = false;       // small dots that no line joins
  std::vector<double> x, y;  // of equal length
};

// An area between two lines.
struct LineBand {
  int colour = 1;
  std::vector<double> x, low, high;  // of equal length
};

// Values against a number, such as the training step.
struct LineChart {
  std::string label;  // description for screen readers
  std::string x_name, y_name;
  bool log_x = false, log_y = false;
  bool zero = false;  // whether the vertical axis begins at 0
  std::vector<LineBand> bands = {};
  std::vector<LineSeries> lines = {};

  // The chart as SVG of this width in pixels; empty without finite values.
  std::string svg(double width) const;

 private:
  Axis axis(bool of_x, int ticks) const;
};

}  // namespace tpudist
