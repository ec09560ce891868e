#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// One resolved value of a configuration, e.g. {"optimizer.lr", "0.001", true}. Maps and lists of
// maps are flattened: "model.blocks.0.width". The value is YAML on one line.
struct ConfigEntry {
  std::string key, value;
  bool is_default = false;
  bool operator==(const ConfigEntry&) const = default;
};

// Aligned lines `data.collection   layout:nlp:random`; a `*` marks values that are not the default.
std::string format_entries(const std::vector<ConfigEntry>& entries);

// Reads back a YAML written by ConfigDocument::resolved_yaml, by any version of the program: keys
// may be unknown. The entries equal those of ConfigDocument::entries, but none is marked as a
// default. `name` stands for the text in messages. Throws ConfigError when the text is not a YAML
// map.
std::vector<ConfigEntry> read_resolved_entries(std::string_view yaml, std::string_view name);

}  // namespace tpudist
