#include "core/config/config_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "core/text_table.hpp"

namespace tpudist {
namespace {

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

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
  if (value.is_map()) {
    for (const YamlValue& item : value.items) flatten(item, below(path, item.key), entries);
    if (value.items.empty() && !path.empty()) entries.push_back({path, "{}"});
  } else if (std::ranges::any_of(value.items, &YamlValue::is_map)) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      flatten(value.items[i], below(path, fmt::format("{}", i)), entries);
    }
  } else {
    entries.push_back({path, one_line(value)});
  }
}

}  // namespace

const ConfigRecord::Entry* ConfigRecord::find(std::string_view key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry->key == key; });
  return found == entries_.end() ? nullptr : found->get();
}

ConfigRecord::Entry& ConfigRecord::entry(std::string_view key, Kind kind) {
  know(key);
  auto* entry = const_cast<Entry*>(find(key));
  if (!entry) {
    entry = entries_.emplace_back(std::make_unique<Entry>(Entry{std::string(key), kind, "", true}))
                .get();
  }
  return *entry;
}

void ConfigRecord::note(std::string_view key, std::string yaml, bool is_default,
                        AcceptedValue accepted) {
  const bool is_new = !find(key);
  Entry& noted = entry(key, Kind::value);
  if (!is_new) return;
  noted.yaml = std::move(yaml);
  noted.is_default = is_default;
  noted.accepted = std::move(accepted);
}

std::vector<std::string> ConfigRecord::unread() const {
  std::vector<std::string> keys;
  for (const std::string& key : known_)
    if (!find(key)) keys.push_back(key);
  std::ranges::sort(keys);
  return keys;
}

ConfigRecord& ConfigRecord::map(std::string_view key, bool given) {
  Entry& noted = entry(key, Kind::map);
  if (!noted.map) noted.map = std::make_unique<ConfigRecord>(given);
  if (given) noted.kind = Kind::map;
  return *noted.map;
}

std::vector<ConfigRecord*> ConfigRecord::list(std::string_view key, std::size_t size) {
  Entry& noted = entry(key, Kind::list);
  if (size > 0) noted.kind = Kind::list;
  std::vector<ConfigRecord*> records;
  for (std::size_t i = 0; i < size; ++i) {
    if (i == noted.items.size()) noted.items.push_back(std::make_unique<ConfigRecord>(true));
    records.push_back(noted.items[i].get());
  }
  return records;
}

void ConfigRecord::find_unknown(const YamlValue& map, const std::string& path,
                                const ConfigRecord& root, YamlMistakes& mistakes) const {
  if (!map.is_map()) return;
  for (const YamlValue& given : map.items) {
    if (!known_.contains(given.key)) {
      mistakes.add(given.key_place, unknown_key(given.key, path, root));
      continue;
    }
    const Entry* noted = find(given.key);
    if (!noted) continue;
    const std::string inner = below(path, given.key);
    if (noted->kind == Kind::map && given.is_map()) {
      noted->map->find_unknown(given, inner, root, mistakes);
    } else if (noted->kind == Kind::list && given.kind == YamlValue::Kind::list) {
      for (std::size_t i = 0; i < std::min(noted->items.size(), given.items.size()); ++i) {
        noted->items[i]->find_unknown(given.items[i], fmt::format("{}.{}", inner, i), root,
                                      mistakes);
      }
    }
  }
}

std::string ConfigRecord::unknown_key(const std::string& key, const std::string& path,
                                      const ConfigRecord& root) const {
  std::string message = "unknown key " + quote_briefly(key);
  if (!path.empty()) message += fmt::format(" in \"{}\"", path);
  std::vector<std::string> candidates(known_.begin(), known_.end());
  std::sort(candidates.begin(), candidates.end());
  if (const std::string nearest = nearest_of(key, candidates); !nearest.empty()) {
    return message + fmt::format("; did you mean \"{}\"?", nearest);
  }
  if (const std::string home = root.home_of(key, ""); !home.empty()) {
    return message + (home == key ? "; it stands at the top level"
                                  : fmt::format("; did you mean \"{}\"?", home));
  }
  if (candidates.empty()) return message + "; it takes no keys";
  return message + "; known are " + first_of(candidates, 20);
}

// The path of a key of this name anywhere in this map.
std::string ConfigRecord::home_of(const std::string& key, const std::string& path) const {
  if (known_.contains(key)) return below(path, key);
  for (const auto& entry : entries_) {
    if (entry->kind != Kind::map) continue;
    std::string home = entry->map->home_of(key, below(path, entry->key));
    if (!home.empty()) return home;
  }
  return {};
}

std::string ConfigRecord::to_yaml(std::size_t indent) const {
  std::string text;
  const std::string margin(indent, ' ');
  for (const auto& entry : entries_) {
    const std::string key = margin + format_yaml_text(entry->key) + ":";
    if (entry->kind == Kind::value) {
      const auto type = entry->accepted.type;
      text += key + " " +
              (type == AcceptedValue::Type::number ? portable_numbers(entry->yaml)
               : type == AcceptedValue::Type::text ? portable_text(entry->yaml)
                                                   : entry->yaml) +
              "\n";
    } else if (entry->kind == Kind::map) {
      const std::string inner = entry->map->to_yaml(indent + 2);
      if (!inner.empty()) {
        text += key + "\n" + inner;
      } else if (entry->map->given_) {
        text += key + " {}\n";
      }
    } else if (entry->items.empty()) {
      text += key + " []\n";
    } else {
      text += key + "\n";
      for (const auto& child : entry->items) {
        const std::string inner = child->to_yaml(indent + 4);
        text += margin + "  - " + (inner.empty() ? "{}\n" : inner.substr(indent + 4));
      }
    }
  }
  return text;
}

void ConfigRecord::add_entries(const std::string& path, std::vector<ConfigEntry>& rows) const {
  for (const auto& entry : entries_) {
    const std::string name = below(path, entry->key);
    if (entry->kind == Kind::value) {
      rows.push_back({name, entry->yaml, entry->is_default});
    } else if (entry->kind == Kind::map) {
      const std::size_t before = rows.size();
      entry->map->add_entries(name, rows);
      if (rows.size() == before && entry->map->given_) rows.push_back({name, "{}", false});
    } else if (entry->items.empty()) {
      rows.push_back({name, "[]", true});
    } else {
      for (std::size_t i = 0; i < entry->items.size(); ++i) {
        const std::string item = fmt::format("{}.{}", name, i);
        const std::size_t before = rows.size();
        entry->items[i]->add_entries(item, rows);
        if (rows.size() == before) rows.push_back({item, "{}", false});
      }
    }
  }
}

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
