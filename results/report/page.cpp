#include "results/report/page.hpp"

#include <fmt/format.h>

#include "core/version.hpp"
#include "results/report/charts/svg_canvas.hpp"

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

std::string legend_html(const std::vector<ReportFigure::LegendEntry>& legend) {
  if (legend.empty()) return {};
  std::string html = "<ul class=\"legend\">";
  for (const ReportFigure::LegendEntry& entry : legend)
    html += fmt::format("<li>{}{}</li>", swatch(entry.style), escaped(entry.text));
  return html + "</ul>\n";
}

std::string panels_html(const std::vector<ReportFigure::Panel>& panels, bool stacked) {
  std::string html;
  const bool single = panels.size() == 1 || stacked;
  for (const ReportFigure::Panel& panel : panels) {
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
  // The table is open if there is no chart.
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

// The style sheet, without characters that XML would need to escape.
constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --page: #f4f4f1; --card: #fcfcfb; --ink: #16150f; --soft: #5a5953;
  --grid: #e3e2db; --edge: #d5d4cc; --c1: #2a6fc4; --c2: #d9602b; --c3: #15905b; --c4: #a97800;
  --c5: #5a49b0; --c6: #c93a3a; --warn: #fff3d6; --warnedge: #d8a530; --on: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --page: #121211; --card: #1b1b19; --ink: #f3f2ec;
  --soft: #b9b8ae; --grid: #30302c; --edge: #3a3a35; --c1: #5b9ded; --c2: #ec7f4d; --c3: #3fb984;
  --c4: #d3a02a; --c5: #a498f2; --c6: #ee7a7a; --warn: #33290f; --warnedge: #9a7420; --on: #10100f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main, header, footer { max-width: 1100px; margin: 0 auto; padding: 0 16px; }
header { padding-top: 24px; } h1 { font-size: 28px; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
header p, footer p, .sentence { color: var(--soft); } header p { margin: 6px 0 14px; }
.headline { font-size: 20px; line-height: 1.4; font-weight: 600; margin: 4px 0 8px; max-width: 80ch; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; font-size: 14px;
  margin: 0 0 14px; } .facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: 6px 14px; font-size: 14px; margin-bottom: 20px; }
a { color: var(--c1); }
section { background: var(--card); border: 1px solid var(--edge); border-radius: 10px;
  padding: 16px; margin: 0 0 18px; }
h2 { font-size: 20px; margin: 0 0 8px; } h3 { font-size: 16px; margin: 22px 0 4px; overflow-wrap: anywhere; }
p { margin: 6px 0; overflow-wrap: anywhere; } .sentence { font-size: 15px; max-width: 100ch; }
.missing { background: var(--warn); border-left: 4px solid var(--warnedge); padding: 6px 12px;
  border-radius: 4px; font-size: 15px; }
figure { margin: 0 0 10px; } .panels { display: flex; flex-wrap: wrap; gap: 10px 14px; }
.panel { min-width: 0; } .caption { font-size: 14px; color: var(--soft); margin: 4px 0; max-width: 250px;
  overflow-wrap: anywhere; } .single .caption { max-width: none; }
.narrow { display: none; }
@media (max-width: 799px) { .wide { display: none; } .narrow { display: block; } .narrow svg { width: 100%; } }
svg { display: block; max-width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 14px; color: var(--soft);
  list-style: none; padding: 0; margin: 6px 0; }
.legend svg { display: inline-block; vertical-align: -2px; margin-right: 6px; width: auto; }
details { margin: 6px 0 14px; font-size: 14px; } summary { cursor: pointer; color: var(--c1); }
details.folded { margin: 0; font-size: 16px; } .folded > summary h2 { display: inline; color: var(--ink);
  margin-right: 8px; } .folded > summary span { color: var(--soft); font-size: 15px; }
.scroll { overflow-x: auto; max-height: 480px; overflow-y: auto; border: 1px solid var(--edge);
  border-radius: 6px; margin-top: 6px; }
table { border-collapse: collapse; font-size: 13px; min-width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--grid); vertical-align: top; }
td { overflow-wrap: break-word; max-width: 44ch; }
th { position: sticky; top: 0; background: var(--card); font-weight: 600; } th.n { text-align: right; } td.n { text-align: right;
  white-space: nowrap; } tbody tr:last-child td { border-bottom: 0; }
th[aria-sort] { cursor: pointer; } th[aria-sort]:hover { color: var(--c1); }
th[aria-sort="ascending"]::after { content: " \25b4"; } th[aria-sort="descending"]::after { content: " \25be"; }
@media (max-width: 799px) { .stacked thead { display: none; } .stacked, .stacked tbody, .stacked tr,
  .stacked td { display: block; } .stacked td, .stacked td.n { display: flex; gap: 12px; max-width: none;
  justify-content: space-between; text-align: right; white-space: normal; border: 0; padding: 2px 10px; }
  .stacked td::before { content: attr(data-name); color: var(--soft); text-align: left; }
  .scroll:has(.stacked) { max-height: none; } .facts { display: block; } .facts dd { margin: 0 0 6px; }
  .stacked tr { border-bottom: 1px solid var(--edge); padding: 6px 0; }
  .stacked td:first-child { font-weight: 600; } }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; } svg text.rowname, svg text.cell { fill: var(--ink); }
svg text.strongtext { font-weight: 600; } svg text.on { fill: var(--on); }
.grid { stroke: var(--grid); } .axis { stroke: var(--soft); }
.line { fill: none; stroke-linejoin: round; } .thin { stroke-width: 1.2; opacity: 0.45; }
.strong { stroke-width: 2.4; } .lone { stroke-width: 2; opacity: 1; }
.dashed { stroke-dasharray: 6 4; } .band { opacity: 0.18; } .bar { stroke: none; } .dot { opacity: 0.45; } .point { stroke: var(--card);
  stroke-width: 1.5; } .second { stroke: var(--card); stroke-width: 1; }
.span { stroke-width: 1.2; } .heavy { stroke-width: 2.6; } .ink { stroke: var(--ink); }
.limit { stroke: var(--ink); stroke-width: 2; } .limitband { fill: var(--soft); }
.identity { stroke: var(--soft); stroke-dasharray: 4 4; } .nocell { fill: none; stroke: var(--grid); }
.s0 { stroke: var(--soft); } .f0 { fill: var(--soft); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); }
.s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); }
.f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); } .f4 { fill: var(--c4); }
.f5 { fill: var(--c5); } .f6 { fill: var(--c6); }
@media print { body { background: none; } section { break-inside: avoid; } }
)css";

}  // namespace

std::string_view page_script() {
  return R"js(
document.querySelectorAll("table").forEach(function (table) {
  var body = table.tBodies[0], names = table.querySelectorAll("th");
  var value = function (row, column) {
    var text = row.cells[column].textContent.trim(), number = Number(text.replace(/,/g, ""));
    return text === "" ? null : isNaN(number) ? text : number;
  };
  var order = function (a, b) {
    if (typeof a === typeof b) return a === b ? 0 : b > a ? -1 : 1;
    return typeof a === "number" ? -1 : 1;
  };
  names.forEach(function (name, column) {
    name.setAttribute("aria-sort", "none");
    name.tabIndex = 0;
    var sort = function () {
      var down = name.getAttribute("aria-sort") === "ascending";
      var rows = Array.from(body.rows);
      rows.sort(function (x, y) {
        var a = value(x, column), b = value(y, column);
        if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
        return down ? order(b, a) : order(a, b);
      });
      names.forEach(function (other) { other.setAttribute("aria-sort", "none"); });
      name.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.forEach(function (row) { body.appendChild(row); });
    };
    name.addEventListener("click", sort);
    name.addEventListener("keydown", function (event) { if (event.key === "Enter") sort(); });
  });
});
)js";
}

std::string_view page_script_hash() {
  return "lgz62PIyMU2n+QEunacWXgg8USuJLuPi2q73z/tE5/w=";
}

std::string table_html(const TextTable& table) {
  std::string html = fmt::format("<div class=\"scroll\"><table{}>\n<thead><tr>",
                                 table.stacked ? " class=\"stacked\"" : "");
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const bool numbers = !table.rows.empty() && table.rows.front()[c].is_number;
    html += fmt::format("<th scope=\"col\"{}>{}</th>", numbers ? " class=\"n\"" : "",
                        escaped(table.columns[c].name));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      html += fmt::format(
          "<td{}{}>{}</td>", row[c].is_number ? " class=\"n\"" : "",
          table.stacked ? fmt::format(" data-name=\"{}\"", escaped(table.columns[c].name)) : "",
          escaped(row[c].shown));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

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
      escaped(title), kStyle, escaped(subtitle), facts_html(facts), page_script_hash());
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
