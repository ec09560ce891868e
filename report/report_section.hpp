#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/report_table.hpp"

namespace tpudist {

// Draws a chart as SVG of a width in pixels; an empty text is no chart.
using ChartDrawing = std::function<std::string(double width)>;

// One of the charts of a figure.
struct ReportPanel {
  std::string caption;  // may be empty
  ChartDrawing draw;
};

// What a mark of a figure stands for.
struct LegendEntry {
  std::string style;  // class of its swatch: "s1" to "s6" (lines), "f1" to "f6" (dots),
                      // "q2" (a square), "limit", "band1"
  std::string text;
};

// Charts with the sentence that says what they show and what not, and the table of their numbers.
struct ReportFigure {
  std::string heading;  // may be empty
  std::string sentence;
  std::vector<LegendEntry> legend;
  std::vector<ReportPanel> panels;        // one fills the width, several stand side by side
  bool stacked = false;                   // several fill the width, too, one below the other
  std::vector<std::string> remarks = {};  // below the charts, such as why an interval looks odd
  ReportTable table;
  bool folded = false;  // the table is, even without a chart
};

// A part of a report. All texts are plain: the page escapes them.
struct ReportSection {
  std::string id, title;
  std::vector<std::string> headline = {};  // the answer; its first sentence in large letters
  std::vector<std::string> notes = {};     // before the figures
  std::vector<ReportFigure> figures = {};
  // Why something is not there, and what gives it.
  std::vector<std::string> missing = {};
  // A folded section shows its title and, beside it, what it says in a few words.
  bool folded = false;
  std::string gist = {};
};

// A line at the top of a report: what it is called, and what it is.
struct ReportFact {
  std::string name, text;
};

}  // namespace tpudist
