#include "core/config/config_entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/config/yaml_scalar.hpp"
#include "core/config/yaml_tree.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "core/text_table.hpp"

namespace tpudist {
namespace {

std::string one_line(const YamlValue& value) {
  if (value.kind != YamlValue::Kind::list) {
    // Undoes portable_numbers and portable_text.
    const bool bare = format_yaml_text(value.text) == value.text;
    if (value.quoted) return bare ? value.text : quote_text(value.text);
    const auto number = parse_number(value.text);
    const bool has_point = value.text.find('.') != std::string::npos;
    return has_point && !number.error ? format_number(number.value) : value.text;
  }
  std::vector<std::string> pieces;
  for (const YamlValue& item : value.items) pieces.push_back(one_line(item));
  return fmt::format("[{}]", join(pieces, ", "));
}

void flatten(const YamlValue& value, const std::string& path, std::vector<ConfigEntry>& entries) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (value.is_map()) {
    for (const YamlEntry& entry : value.entries) flatten(entry.value, below(entry.key), entries);
    if (value.entries.empty() && !path.empty()) entries.push_back({path, "{}"});
  } else if (std::ranges::any_of(value.items, &YamlValue::is_map)) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      flatten(value.items[i], below(fmt::format("{}", i)), entries);
    }
  } else {
    entries.push_back({path, one_line(value)});
  }
}

}  // namespace

std::string format_entries(const std::vector<ConfigEntry>& entries) {
  TextTable table({"", TableColumn("", 0, 3)});
  for (const ConfigEntry& entry : entries)
    table.rows.push_back({entry.key, entry.value + (entry.is_default ? "" : " *")});
  return table.to_text();
}

std::vector<ConfigEntry> read_resolved_entries(std::string_view yaml, std::string_view name) {
  YamlMistakes mistakes;
  const auto source =
      std::make_shared<YamlLocation::Source>(YamlLocation::Source{std::string(name), 0});
  const YamlValue tree = parse_yaml(yaml, source, mistakes);
  if (!mistakes.empty()) throw ConfigError(mistakes.to_string());
  if (!tree.is_map()) throw ConfigError(fmt::format("{}: is not a map of keys", name));
  std::vector<ConfigEntry> entries;
  flatten(tree, "", entries);
  return entries;
}

}  // namespace tpudist
