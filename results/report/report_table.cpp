#include "results/report/report_table.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/escape.hpp"
#include "core/numbers.hpp"
#include "results/report/charts/markup.hpp"

namespace tpudist {
TableCell::TableCell(std::string text) : shown(text), exact(std::move(text)) {}

TableCell::TableCell(const char* text) : TableCell(std::string(text)) {}

TableCell::TableCell(double value, int decimals) : is_number(true) {
  if (std::isnan(value)) return;
  shown = fmt::format("{:.{}f}", value, decimals);
  exact = fmt::format("{}", value);
}

TableCell TableCell::count(std::int64_t value) {
  TableCell cell(format_count(value));
  cell.exact = std::to_string(value);
  cell.is_number = true;
  return cell;
}

std::string table_html(const ReportTable& table) {
  std::string html = fmt::format("<div class=\"scroll\"><table{}>\n<thead><tr>",
                                 table.stacked ? " class=\"stacked\"" : "");
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const bool numbers = !table.rows.empty() && table.rows.front()[c].is_number;
    html += fmt::format("<th scope=\"col\"{}>{}</th>", numbers ? " class=\"n\"" : "",
                        escaped(table.columns[c]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      html += fmt::format(
          "<td{}{}>{}</td>", row[c].is_number ? " class=\"n\"" : "",
          table.stacked ? fmt::format(" data-name=\"{}\"", escaped(table.columns[c])) : "",
          escaped(row[c].shown));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string table_csv(const ReportTable& table) {
  std::string csv;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    csv += (c > 0 ? "," : "") + csv_field(table.columns[c]);
  csv += "\n";
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      csv += (c > 0 ? "," : "") + csv_field(row[c].exact);
    csv += "\n";
  }
  return csv;
}

}  // namespace tpudist
