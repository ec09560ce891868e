#include "data/schema/feature_schema.hpp"

#include <fmt/format.h>

#include <charconv>

namespace tpudist {

std::string to_text(const ColumnRange& columns) {
  if (columns.count == 0) return "none";
  return fmt::format("{}-{}", columns.first, columns.first + columns.count - 1);
}

bool parse_columns(const std::string& text, int columns_of, ColumnRange& columns) {
  columns = {};
  if (text == "none") return true;
  const char* const end = text.data() + text.size();
  int first = 0;
  const auto start = std::from_chars(text.data(), end, first);
  if (start.ec != std::errc()) return false;
  int last = first;
  auto stop = start;
  if (start.ptr != end && *start.ptr == '-') stop = std::from_chars(start.ptr + 1, end, last);
  if (stop.ec != std::errc() || stop.ptr != end) return false;
  if (first < 0 || last < first || last >= columns_of) return false;
  columns = {first, last - first + 1};
  return true;
}

std::string fault_of(const FeatureSchema& schema) {
  const auto fault = [](const char* what, int count, int least, int most) {
    if (count >= least && count <= most) return std::string();
    return fmt::format("{} is {}, but must be {} to {}", what, count, least, most);
  };
  std::string text = fault("node_features", schema.node_features, 1, kMostNodeFeatures);
  if (text.empty()) text = fault("config_features", schema.config_features, 1, kMostConfigFeatures);
  if (text.empty()) text = fault("opcodes", schema.opcodes, 0, kMostOpcodes);
  for (const ColumnRange& columns : {schema.layout_columns, schema.dimension_columns}) {
    if (text.empty() && columns.first + columns.count > schema.node_features)
      text = fmt::format("columns {} are not below node_features, {}", to_text(columns),
                         schema.node_features);
  }
  return text;
}

std::string to_text(const FeatureSchema& schema) {
  const auto number_of = [](int count, const char* one) {
    return count == 0 ? fmt::format("no {}s", one)
                      : fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
  };
  std::string text = fmt::format("{}, {}, {}", number_of(schema.node_features, "node feature"),
                                 number_of(schema.config_features, "configuration feature"),
                                 number_of(schema.opcodes, "opcode"));
  if (schema.layout_columns.count > 0) text += ", layout columns " + to_text(schema.layout_columns);
  if (schema.dimension_columns.count > 0)
    text += ", dimension columns " + to_text(schema.dimension_columns);
  return text;
}

}  // namespace tpudist
