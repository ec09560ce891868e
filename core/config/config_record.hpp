#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/config/config_entries.hpp"
#include "core/config/yaml_tree.hpp"

namespace tpudist {

// The keys that were asked for in one map of a configuration, in the order of asking, with their
// resolved values.
class ConfigRecord {
 public:
  explicit ConfigRecord(bool given) : given_(given) {}

  // Declares a key as known; it need not be read later.
  void know(std::string_view key) { known_.emplace(key); }

  // Records a value as YAML on one line. A key that is asked for again keeps its first value.
  void note(std::string_view key, std::string yaml, bool is_default);
  // The record of the map under a key; asking again returns the same record.
  ConfigRecord& map(std::string_view key, bool given);
  // The records of the maps in the list under a key.
  std::vector<ConfigRecord*> list(std::string_view key, std::size_t size);

  // Records a mistake for every unknown key in `map` and in the maps below it.
  void find_unknown(const YamlValue& map, const std::string& path, const ConfigRecord& root,
                    YamlMistakes& mistakes) const;

  // All recorded values as a YAML map in block style; empty where nothing is to be written.
  std::string to_yaml(std::size_t indent) const;

  // All recorded values as a flat list.
  void add_entries(const std::string& path, std::vector<ConfigEntry>& rows) const;

 private:
  enum class Kind { value, map, list };
  struct Entry {
    std::string key;
    Kind kind = Kind::value;
    std::string yaml;
    bool is_default = true;
    std::unique_ptr<ConfigRecord> map = {};                 // of a map
    std::vector<std::unique_ptr<ConfigRecord>> items = {};  // of a list of maps
  };

  const Entry* find(std::string_view key) const;
  // The entry of a key, created or converted to this kind.
  Entry& entry(std::string_view key, Kind kind);
  std::string unknown_key(const std::string& key, const std::string& path,
                          const ConfigRecord& root) const;
  std::string home_of(const std::string& key, const std::string& path) const;

  bool given_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::unordered_set<std::string> known_;
};

}  // namespace tpudist
