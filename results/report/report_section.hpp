#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/text_table.hpp"

namespace tpudist {

// Draws a chart as SVG of a width in pixels; an empty text means no chart.
using ChartDrawing = std::function<std::string(double width)>;

// One of the charts of a figure.
struct ReportPanel {
  std::string caption;  // may be empty
  ChartDrawing draw;
};

// The meaning of a mark in a figure.
struct LegendEntry {
  std::string style;  // class of its mark: "s1" to "s6" (lines), "f1" to "f6" (dots), "q2" (a
                      // square), "limit", "band1"
  std::string text;
};

// Charts with a sentence on what they show, and a table of the numbers.
struct ReportFigure {
  std::string heading;  // may be empty
  std::string sentence;
  std::vector<LegendEntry> legend;
  std::vector<ReportPanel> panels;        // one panel fills the width; several are side by side
  bool stacked = false;                   // panels are one below the other, each at full width
  std::vector<std::string> remarks = {};  // below the charts, e.g. why an interval looks odd
  TextTable table;
  bool folded = false;  // whether to fold the table even without a chart
};

// A part of a report. All texts are plain; the page escapes them.
struct ReportSection {
  std::string id, title;
  std::vector<std::string> headline = {};  // the answer; its first sentence in large letters
  std::vector<std::string> notes = {};     // before the figures
  std::vector<ReportFigure> figures = {};
  // Why something is missing, and how to get it.
  std::vector<std::string> missing = {};
  // A folded section shows only its title and a short summary, `gist`.
  bool folded = false;
  std::string gist = {};
};

// A line at the top of a report: name and text.
struct ReportFact {
  std::string name, text;
};

}  // namespace tpudist
