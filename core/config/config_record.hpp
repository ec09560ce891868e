#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/config/yaml_tree.hpp"

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

// What the reader of a key accepts, for the JSON Schema of a file (config_schema).
struct AcceptedValue {
  enum class Type { any, boolean, integer, number, text };
  Type type = Type::any;
  bool is_list = false;                 // a list of such values
  std::vector<std::string> words = {};  // a text: only these; other types: these too
  bool joined = false;                  // a text of some of the words, joined by +
  bool bytes = false;                   // an integer, or one with a unit of bytes
  std::optional<double> min = {}, max = {};
  bool operator==(const AcceptedValue&) const = default;
};

// The requested keys of one map of a configuration, in the order of the requests, with their
// resolved values.
class ConfigRecord {
 public:
  explicit ConfigRecord(bool given) : given_(given) {}

  // Declares a key as known; it need not be read later.
  void know(std::string_view key) { known_.emplace(key); }
  // Declares that the reader looks at the kind of a value (ask_kind), or takes any key of this map.
  void ask_kind(std::string_view key) { kinds_.emplace(key); }
  void take_any_key() { takes_any_key_ = true; }

  // Records a value as YAML on one line. A key that is read again keeps its first value.
  void note(std::string_view key, std::string yaml, bool is_default, AcceptedValue accepted = {});
  // The record of the map under a key; another call returns the same record.
  ConfigRecord& map(std::string_view key, bool given);
  // The records of the maps in the list under a key.
  std::vector<ConfigRecord*> list(std::string_view key, std::size_t size);

  // Records a mistake for every unknown key in `map` and in the maps below it.
  void find_unknown(const YamlValue& map, const std::string& path, const ConfigRecord& root,
                    YamlMistakes& mistakes) const;

  // All recorded values as a YAML map in block style; empty without values.
  std::string to_yaml(std::size_t indent) const;

  // All recorded values as a flat list.
  void add_entries(const std::string& path, std::vector<ConfigEntry>& rows) const;

  enum class Kind { value, map, list };
  struct Entry {
    std::string key;
    Kind kind = Kind::value;
    std::string yaml;
    bool is_default = true;
    AcceptedValue accepted = {};                            // of a value
    std::unique_ptr<ConfigRecord> map = {};                 // of a map
    std::vector<std::unique_ptr<ConfigRecord>> items = {};  // of a list of maps
  };

  // In the order of reading, without declared keys that were not read.
  const std::vector<std::unique_ptr<Entry>>& read() const { return entries_; }
  // Declared keys that were not read, sorted.
  std::vector<std::string> unread() const;
  bool asks_kind(const std::string& key) const { return kinds_.contains(key); }
  bool takes_any_key() const { return takes_any_key_; }

 private:
  const Entry* find(std::string_view key) const;
  // The entry of a key, created, or converted to `kind`.
  Entry& entry(std::string_view key, Kind kind);
  std::string unknown_key(const std::string& key, const std::string& path,
                          const ConfigRecord& root) const;
  std::string home_of(const std::string& key, const std::string& path) const;

  bool given_, takes_any_key_ = false;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::unordered_set<std::string> known_, kinds_;
};

}  // namespace tpudist
