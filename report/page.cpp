#include "report/page.hpp"

#include <fmt/format.h>

#include "core/version.hpp"
#include "report/charts/markup.hpp"
#include "report/page_style.hpp"

namespace tpudist {
namespace {

// Widths of charts in pixels: a card's on a desktop, one of three side by side, a phone's.
constexpr double kWide = 1034, kPanel = 330, kNarrow = 324;

std::string swatch(const std::string& style) {
  const std::string start =
      "<svg width=\"18\" height=\"12\" viewBox=\"0 0 18 12\" aria-hidden=\"true\">";
  if (style == "limit")
    return start + "<line class=\"limit\" x1=\"9\" y1=\"0\" x2=\"9\" y2=\"12\"/></svg>";
  if (style.starts_with("band"))
    return start + fmt::format("<rect class=\"band f{}\" width=\"18\" height=\"12\"/></svg>",
                               style.substr(4));
  if (style.starts_with("q"))
    return start +
           fmt::format("<rect class=\"f{}\" x=\"4\" y=\"1\" width=\"9\" height=\"9\"/></svg>",
                       style.substr(1));
  if (style.starts_with("f"))
    return start + fmt::format("<circle class=\"{}\" cx=\"9\" cy=\"6\" r=\"4.5\"/></svg>", style);
  return start +
         fmt::format("<line class=\"line {}\" x1=\"0\" y1=\"6\" x2=\"18\" y2=\"6\"/></svg>", style);
}

std::string legend_html(const std::vector<LegendEntry>& legend) {
  if (legend.empty()) return {};
  std::string html = "<ul class=\"legend\">";
  for (const LegendEntry& entry : legend)
    html += fmt::format("<li>{}{}</li>", swatch(entry.style), escaped(entry.text));
  return html + "</ul>\n";
}

std::string panels_html(const std::vector<ReportPanel>& panels, bool stacked) {
  std::string html;
  const bool single = panels.size() == 1 || stacked;
  for (const ReportPanel& panel : panels) {
    const std::string wide = panel.draw(single ? kWide : kPanel), narrow = panel.draw(kNarrow);
    if (wide.empty()) continue;
    html += "<div class=\"panel\">";
    if (!panel.caption.empty())
      html += fmt::format("<p class=\"caption\">{}</p>", escaped(panel.caption));
    html += fmt::format("<div class=\"wide\">{}</div><div class=\"narrow\">{}</div></div>\n", wide,
                        narrow);
  }
  if (html.empty()) return {};
  return fmt::format("<div class=\"panels{}\">\n{}</div>\n", single ? " single" : "", html);
}

std::string figure_html(const ReportFigure& figure) {
  std::string html;
  if (!figure.heading.empty()) html += fmt::format("<h3>{}</h3>\n", escaped(figure.heading));
  if (!figure.sentence.empty())
    html += fmt::format("<p class=\"sentence\">{}</p>\n", escaped(figure.sentence));
  const std::string panels = panels_html(figure.panels, figure.stacked);
  if (!panels.empty()) html += "<figure>\n" + legend_html(figure.legend) + panels + "</figure>\n";
  for (const std::string& remark : figure.remarks)
    html += fmt::format("<p class=\"sentence\">{}</p>\n", escaped(remark));
  if (figure.table.rows.empty()) return html;
  // Without a chart the table is open.
  html += fmt::format("<details{}><summary>Table of {} row{} ({}.csv)</summary>\n{}</details>\n",
                      panels.empty() && !figure.folded ? " open=\"open\"" : "",
                      figure.table.rows.size(), figure.table.rows.size() == 1 ? "" : "s",
                      escaped(figure.table.name), table_html(figure.table));
  return html;
}

std::string headline_html(const std::vector<std::string>& sentences) {
  if (sentences.empty()) return {};
  std::string html = fmt::format("<p class=\"headline\">{}</p>\n", escaped(sentences.front()));
  if (sentences.size() == 1) return html;
  html += "<p>";
  for (std::size_t i = 1; i < sentences.size(); ++i)
    html += (i > 1 ? " " : "") + escaped(sentences[i]);
  return html + "</p>\n";
}

std::string section_html(const ReportSection& section) {
  std::string content = headline_html(section.headline);
  for (const std::string& note : section.notes)
    content += fmt::format("<p>{}</p>\n", escaped(note));
  for (const std::string& missing : section.missing)
    content += fmt::format("<p class=\"missing\">{}</p>\n", escaped(missing));
  for (const ReportFigure& figure : section.figures) content += figure_html(figure);
  const std::string id = escaped(section.id), title = escaped(section.title);
  if (!section.folded)
    return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, content);
  // Opens a folded section when a link leads into it.
  return fmt::format(
      "<section>\n<details class=\"folded\"><summary><h2>{}</h2> <span>{}</span></summary>\n"
      "<div id=\"{}\">\n{}</div></details>\n</section>\n",
      title, escaped(section.gist), id, content);
}

std::string facts_html(std::span<const ReportFact> facts) {
  if (facts.empty()) return {};
  std::string html = "<dl class=\"facts\">\n";
  for (const ReportFact& fact : facts)
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(fact.name), escaped(fact.text));
  return html + "</dl>\n";
}

}  // namespace

std::string page_html(const std::string& title, const std::string& subtitle,
                      std::span<const ReportFact> facts, std::span<const ReportSection> sections) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src "
      "'sha256-{4}'\"/>\n<title>{0}</title>\n<style>{1}</style>\n</head>\n"
      "<body>\n<header>\n<h1>{0}</h1>\n<p>{2}</p>\n{3}<nav aria-label=\"Sections\">",
      escaped(title), page_style(), escaped(subtitle), facts_html(facts), page_script_hash());
  for (const ReportSection& section : sections)
    html += fmt::format("<a href=\"#{}\">{}</a>", escaped(section.id), escaped(section.title));
  html += "</nav>\n</header>\n<main>\n";
  for (const ReportSection& section : sections) html += section_html(section);
  return html + fmt::format(
                    "</main>\n<footer><p>Written by tpudist {} report.</p></footer>\n"
                    "<script>{}</script>\n</body>\n</html>\n",
                    version(), page_script());
}

}  // namespace tpudist
