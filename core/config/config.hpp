#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config_entries.hpp"

namespace tpudist {

class ConfigNode;

// A strict YAML configuration. Loading resolves, in this order:
// - `include:` at the top of a file: a path or a list of paths beside the file. Maps are merged key
//   by key; the including file wins, then later files over earlier ones. Lists are replaced as a
//   whole.
// - overrides `key.sub=value`: the value is YAML and replaces what was there; `list.0.key` reaches
//   into a list; maps that are missing are made.
// - `${env:NAME,default}` anywhere in a scalar; empty counts as unset. `$${env:` is a literal
//   `${env:`.
// Duplicate keys, empty values, merge keys (`<<`), tags, anchors that loop, and several documents
// are refused. Reading goes through ConfigNode, which records each key that was asked for and its
// resolved value. Mistakes are collected, and `finish` throws them all at once. Not thread-safe.
class ConfigDocument {
 public:
  // Throws ConfigError when a file cannot be read or is not YAML.
  static ConfigDocument load(const std::filesystem::path& path,
                             const std::vector<std::string>& overrides = {});
  static ConfigDocument parse(std::string_view text, std::string_view name,
                              const std::vector<std::string>& overrides = {});
  ConfigDocument(ConfigDocument&&) noexcept;
  ConfigDocument& operator=(ConfigDocument&&) noexcept;
  ~ConfigDocument();

  ConfigNode root();

  // Throws one ConfigError that lists every mistake as `file:line:column: message`, unknown keys
  // (given, but never asked for) with the nearest key that was asked for in the same map. Call
  // after everything has been read.
  void finish();

  // Everything that was read, defaults included, as YAML (keys in the order of asking), after
  // `finish`.
  std::string resolved_yaml() const;
  // The same as a flat list, and as its table (format_entries).
  std::vector<ConfigEntry> entries() const;
  std::string resolved_table() const;
  // XXH3 of resolved_yaml().
  std::uint64_t hash() const;

 private:
  friend class ConfigNode;
  struct Impl;
  explicit ConfigDocument(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

template <typename T>
struct Limits {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};

// One map of the document. Cheap to copy; valid while the document lives. A getter with a wrong
// type or value records the mistake and returns the default, so that reading goes on.
class ConfigNode {
 public:
  // True when the file (or an override) gives the key. The resolved YAML gives every key that was
  // read, so let `has` decide nothing but whether to read this key.
  bool has(std::string_view key) const;
  // "absent", "scalar", "list" or "map".
  std::string kind(std::string_view key) const;
  // The keys given in this map, in order (for maps with free keys, e.g. weighted losses).
  std::vector<std::string> keys() const;

  std::int64_t integer(std::string_view key, std::int64_t fallback,
                       Limits<std::int64_t> limits = {});
  double number(std::string_view key, double fallback,
                Limits<double> limits = {});  // 1e-3 and inf allowed
  bool boolean(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);
  std::string choice(std::string_view key, std::string_view fallback,
                     std::initializer_list<std::string_view> allowed);
  std::string choice(std::string_view key, std::string_view fallback,
                     const std::vector<std::string>& allowed);
  // Either an integer within limits or the word `auto` (returned as `auto_value`).
  std::int64_t integer_or_auto(std::string_view key, std::int64_t auto_value,
                               Limits<std::int64_t> limits = {});

  std::vector<std::int64_t> integers(std::string_view key, std::vector<std::int64_t> fallback,
                                     Limits<std::int64_t> limits = {});
  std::vector<double> numbers(std::string_view key, std::vector<double> fallback,
                              Limits<double> limits = {});
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback);

  // Any value as YAML on one line, for keys whose meaning another document knows; "" when it is not
  // given. Environment variables and aliases are replaced by what they stand for.
  std::string yaml(std::string_view key);
  // The same for each item of a list.
  std::vector<std::string> yaml_items(std::string_view key);

  // Records a mistake when the key is not given. Call before the getter.
  void require(std::string_view key);

  // A map under `key`; an empty one when it is not given.
  ConfigNode child(std::string_view key);
  // A list of maps under `key`; empty when it is not given.
  std::vector<ConfigNode> items(std::string_view key);

  // Records a mistake at the key's place (or at this map when the key is not given).
  void mistake(std::string_view key, std::string_view message);

  // Dotted path of this map, e.g. "data.exclude".
  std::string path() const;

 private:
  friend class ConfigDocument;
  struct Impl;
  explicit ConfigNode(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace tpudist
