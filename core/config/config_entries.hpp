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

// Aligned lines `data.collection   layout:nlp:random`, a `*` behind values that are not the default.
std::string format_entries(const std::vector<ConfigEntry>& entries);

// The entries of a YAML that ConfigDocument::resolved_yaml wrote, of this version of the program or
// of another: keys need not be known. They come back as ConfigDocument::entries gave them, but none
// is marked as a default. `name` stands for the text in messages. Throws ConfigError when the text
// is not a YAML map.
std::vector<ConfigEntry> read_resolved_entries(std::string_view yaml, std::string_view name);

}  // namespace tpudist
