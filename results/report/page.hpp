#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text_table.hpp"

namespace tpudist {

// Charts with a sentence on what they show, and a table of the numbers.
struct ReportFigure {
  // The meaning of a mark in a figure.
  struct LegendEntry {
    std::string style;  // class of its mark: "s1" to "s6" (lines), "f1" to "f6" (dots), "q2" (a
                        // square), "limit", "band1"
    std::string text;
  };

  struct Panel {
    std::string caption;  // may be empty
    // Draws a chart as SVG of a width in pixels; an empty text means no chart.
    std::function<std::string(double width)> draw;
  };

  std::string heading;  // may be empty
  std::string sentence;
  std::vector<LegendEntry> legend;
  std::vector<Panel> panels;              // one panel fills the width; several are side by side
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

// The script that sorts the rows of a table by the clicked column; a second click reverses the
// order. The text has no '<' and no '&', so that the page stays XML.
std::string_view page_script();
// SHA-256 of the script in base64: the page's security policy allows only this script.
std::string_view page_script_hash();

// A table as an HTML element; columns of numbers are right-aligned.
std::string table_html(const TextTable& table);

// A standalone page: one HTML file that is also well-formed XML, loads nothing, and follows the
// reader's light or dark scheme. The only script, page_script(), sorts tables; the page is complete
// without scripts. Charts are drawn twice, for wide and for narrow screens. The same arguments give
// the same bytes.
std::string page_html(const std::string& title, const std::string& subtitle,
                      std::span<const ReportFact> facts, std::span<const ReportSection> sections);

}  // namespace tpudist
