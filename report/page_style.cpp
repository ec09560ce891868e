#include "report/page_style.hpp"

namespace tpudist {

std::string_view page_style() {
  return R"css(
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
.marked { fill: none; stroke: var(--c6); stroke-width: 2; }
.s0 { stroke: var(--soft); } .f0 { fill: var(--soft); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); }
.s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); }
.f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); } .f4 { fill: var(--c4); }
.f5 { fill: var(--c5); } .f6 { fill: var(--c6); }
@media print { body { background: none; } section { break-inside: avoid; } }
)css";
}

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

}  // namespace tpudist
