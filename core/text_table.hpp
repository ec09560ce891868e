#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// A cell of a table: the text that a reader sees, and the one for the CSV file.
struct TableCell {
  std::string shown, exact;
  bool is_number = false;

  TableCell(const std::convertible_to<std::string_view> auto& text)
      : shown(std::string_view(text)), exact(shown) {}
  TableCell(std::integral auto value) : TableCell(std::to_string(value)) { is_number = true; }
  // A reader sees the number in `format`, which is fmt's. NaN and nothing become an empty cell, in
  // text "-".
  TableCell(double value, const char* format = "{:.4f}");
  TableCell(const std::optional<double>& value, const char* format = "{:.4f}");
  // "31,091,253"; in the CSV file without separators.
  static TableCell count(std::int64_t value);
};

struct TableColumn {
  std::string name;  // with the unit: "training [s]"
  // For text: the least width, and the spaces before each column but the first.
  std::size_t width, gap;
  bool right = false;  // aligned to the right

  TableColumn(const std::convertible_to<std::string_view> auto& title, std::size_t least_width = 0,
              std::size_t spaces = 2)
      : name(std::string_view(title)), width(least_width), gap(spaces) {}
};

TableColumn right(std::string_view title, std::size_t least_width = 0, std::size_t spaces = 2);

// A table for a terminal, a CSV file or a page (results/report/page.hpp).
struct TextTable {
  using Row = std::vector<TableCell>;

  std::vector<TableColumn> columns;
  std::vector<Row> rows;  // a row may lack its last cells
  std::string name;       // of the CSV file without ".csv": letters, digits, '-'
  // On a narrow screen each row becomes a block with column names, so that no column is hidden.
  bool stacked = false;

  TextTable(std::vector<TableColumn> columns = {}, std::vector<Row> rows = {},
            std::string name = {}, bool stacked = false)
      : columns(std::move(columns)),
        rows(std::move(rows)),
        name(std::move(name)),
        stacked(stacked) {}

  // Aligned columns, each as wide as its widest cell, below their names unless none has one. Lines
  // end without spaces.
  std::string to_text(std::size_t indent = 0) const;
  // With a header (RFC 4180), lines ending in "\n"; numbers are exact.
  std::string to_csv() const;
};

}  // namespace tpudist
