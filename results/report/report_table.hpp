#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// A cell of a table: the text shown on the page, and the one for the CSV file.
struct TableCell {
  std::string shown, exact;
  bool is_number = false;

  TableCell(std::string text);
  TableCell(const char* text);
  // NaN becomes an empty cell.
  TableCell(double value, int decimals = 4);
  static TableCell count(std::int64_t value);
};

// A table on the page and in a CSV file. Every row has as many cells as there are columns.
struct ReportTable {
  std::string name;  // of the CSV file without ".csv": letters, digits, '-'
  std::vector<std::string> columns;
  std::vector<std::vector<TableCell>> rows;
  // On a narrow screen each row becomes a block with column names, so that no column is hidden.
  bool stacked = false;
};

// As an HTML element; columns of numbers are right-aligned.
std::string table_html(const ReportTable& table);
// With a header (RFC 4180), lines ending in "\n"; numbers are exact.
std::string table_csv(const ReportTable& table);

}  // namespace tpudist
