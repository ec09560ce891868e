#include "core/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numbers.hpp"
#include "core/text.hpp"

namespace tpudist {

TableCell::TableCell(double value, const char* format) : is_number(true) {
  if (std::isnan(value)) return;
  shown = fmt::format(fmt::runtime(format), value);
  exact = fmt::format("{}", value);
}

TableCell::TableCell(const std::optional<double>& value, const char* format)
    : TableCell(value.value_or(std::nan("")), format) {}

TableCell TableCell::count(std::int64_t value) {
  TableCell cell(value);
  cell.shown = format_count(value);
  return cell;
}

TableColumn right(std::string_view title, std::size_t least_width, std::size_t spaces) {
  TableColumn column(title, least_width, spaces);
  column.right = true;
  return column;
}

std::string TextTable::to_text(std::size_t indent) const {
  const auto shown = [](const TableCell& cell) -> std::string_view {
    if (cell.is_number && cell.shown.empty()) return "-";
    return cell.shown;
  };
  Row header;
  std::vector<std::size_t> widths;
  for (const TableColumn& column : columns) {
    header.emplace_back(column.name);
    widths.push_back(std::max(column.width, column.name.size()));
  }
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], shown(row[c]).size());
  }
  std::string text;
  const auto add = [&](const Row& row) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line.append(columns[c].gap, ' ');
      line += columns[c].right ? fmt::format("{:>{}}", shown(row[c]), widths[c])
                               : fmt::format("{:<{}}", shown(row[c]), widths[c]);
    }
    text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  };
  const auto unnamed = [](const TableColumn& column) { return column.name.empty(); };
  if (!std::ranges::all_of(columns, unnamed)) add(header);
  for (const Row& row : rows) add(row);
  return text;
}

std::string TextTable::to_csv() const {
  std::string csv;
  for (std::size_t c = 0; c < columns.size(); ++c)
    csv += (c > 0 ? "," : "") + csv_field(columns[c].name);
  csv += "\n";
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      csv += (c > 0 ? "," : "") + csv_field(row[c].exact);
    csv += "\n";
  }
  return csv;
}

}  // namespace tpudist
