#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config_record.hpp"
#include "core/config/yaml_tree.hpp"
#include "core/text.hpp"

namespace tpudist {

template <typename T>
struct Limits {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};

// One map of a ConfigDocument. Cheap to copy; valid while the document lives. If a type or value is
// wrong, a getter records the mistake and returns the default, so that reading continues.
class ConfigNode {
 public:
  // True when the file or an override gives the key. Use it only to decide whether to read this
  // key: the resolved YAML lists every key that was read, so `has` is true for all of them on the
  // next load.
  bool has(std::string_view key) const;
  // "absent", "scalar", "list" or "map".
  std::string kind(std::string_view key) const;
  // The keys given in this map, in order. For maps with free keys, e.g. weighted losses.
  std::vector<std::string> keys() const;

  std::int64_t integer(std::string_view key, std::int64_t fallback,
                       Limits<std::int64_t> limits = {});
  // With or without a unit: 4GB, 512MiB.
  std::int64_t bytes(std::string_view key, std::int64_t fallback, Limits<std::int64_t> limits);
  double number(std::string_view key, double fallback,
                Limits<double> limits = {});  // 1e-3 and inf allowed
  bool boolean(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);
  std::string choice(std::string_view key, std::string_view fallback,
                     const std::vector<std::string>& allowed);
  // Either an integer within the limits or the word `auto` (returned as `auto_value`).
  std::int64_t integer_or_auto(std::string_view key, std::int64_t auto_value,
                               Limits<std::int64_t> limits = {});

  std::vector<std::int64_t> integers(std::string_view key, std::vector<std::int64_t> fallback,
                                     Limits<std::int64_t> limits = {});
  std::vector<double> numbers(std::string_view key, std::vector<double> fallback,
                              Limits<double> limits = {});
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback);
  // A list of words, each of them one of `allowed`.
  std::vector<std::string> words(std::string_view key, std::vector<std::string> fallback,
                                 const std::vector<std::string>& allowed);
  // One or more different words in one text, joined by +.
  std::vector<std::string> joined_words(std::string_view key, std::string_view fallback,
                                        const std::vector<std::string>& allowed);
  // A text or a list of texts, returned sorted. A list of one text is recorded as a text.
  std::vector<std::string> text_set(std::string_view key, std::string_view fallback);

  // Any value as YAML on one line, for keys that other code interprets; "" when it is not given.
  // Environment variables and aliases are replaced by their values.
  std::string yaml(std::string_view key);
  // The same for each item of a list.
  std::vector<std::string> yaml_items(std::string_view key);

  // Records a mistake when the key is not given. Call before the getter.
  void require(std::string_view key);

  // A map under `key`; an empty one when it is not given.
  ConfigNode child(std::string_view key);
  // A list of maps under `key`; empty when it is not given.
  std::vector<ConfigNode> items(std::string_view key);

  // Records a mistake at the position of the key, or of this map when the key is not given.
  void mistake(std::string_view key, std::string_view message);

 private:
  friend class ConfigDocument;
  struct Impl;
  explicit ConfigNode(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// A strict YAML configuration. Loading resolves, in this order:
// - `include:` at the top of a file: a path or a list of paths, relative to the file. Maps are
//   merged key by key; the including file wins, then later files over earlier ones. A list is
//   replaced as a whole.
// - overrides `key.sub=value`: the value is YAML and replaces the old one. `list.0.key` reaches
//   into a list; missing maps are created.
// - `${env:NAME,default}` anywhere in a scalar; an empty variable counts as unset. `$${env:` stands
//   for a literal `${env:`.
//
// Refused: duplicate keys, empty values, merge keys (`<<`), tags, anchors that loop, and several
// documents. ConfigNode reads the values and records every requested key with its resolved value.
// Mistakes are collected; `finish` throws them all at once. Not thread-safe.
class ConfigDocument {
 public:
  // Throws ConfigError when a file cannot be read or is not YAML.
  static ConfigDocument load(const std::filesystem::path& path,
                             const std::vector<std::string>& overrides = {});
  static ConfigDocument parse(std::string_view text, std::string_view name,
                              const std::vector<std::string>& overrides = {});

  ConfigNode root();

  // Throws one ConfigError that lists every mistake as `file:line:column: message`. A key that is
  // given but never requested is a mistake too; the message names the nearest known key of the same
  // map. Call it after everything has been read.
  void finish();

  // Every value that was read, defaults included, as YAML, in the order of reading. Call it after
  // `finish`.
  std::string resolved_yaml() const;
  // The same as a flat list; format_entries makes a table of it.
  std::vector<ConfigEntry> entries() const;
  // Every requested key; for config_schema.
  const ConfigRecord& record() const;
  // XXH3 of resolved_yaml().
  std::uint64_t hash() const;

 private:
  friend class ConfigNode;
  struct Impl {
    YamlValue tree;
    YamlMistakes mistakes;
    ConfigRecord record{true};
  };
  ConfigDocument() = default;
  std::unique_ptr<Impl> impl_ = std::make_unique<Impl>();  // nodes point into it
};

// How values of a configuration are written as YAML, in flow style, and described in messages.

std::string to_yaml(std::int64_t value);
std::string to_yaml(double value);
std::string to_yaml(bool value);
std::string to_yaml(const std::string& value);
std::string to_yaml(const std::optional<std::int64_t>& value);  // nothing: `auto`
std::string to_yaml(const YamlValue& value);

template <typename T>
std::string to_yaml(const std::vector<T>& values) {
  std::vector<std::string> pieces;
  for (const T& value : values) pieces.push_back(to_yaml(value));
  return fmt::format("[{}]", join(pieces, ", "));
}

// Describes a value for a message: `is "ten"`, `is a list`.
std::string describe(const YamlValue& value);

// "between 1 and 64", "at least 1", "at most 64"; empty without limits.
template <typename T>
std::string describe(const Limits<T>& limits) {
  const bool low = limits.min != std::numeric_limits<T>::lowest();
  const bool high = limits.max != std::numeric_limits<T>::max();
  if (low && high)
    return fmt::format("between {} and {}", to_yaml(limits.min), to_yaml(limits.max));
  if (low) return "at least " + to_yaml(limits.min);
  if (high) return "at most " + to_yaml(limits.max);
  return {};
}

// The default limits include infinity.
template <typename T>
bool within(T value, const Limits<T>& limits) {
  return (value >= limits.min || limits.min == std::numeric_limits<T>::lowest()) &&
         (value <= limits.max || limits.max == std::numeric_limits<T>::max());
}

}  // namespace tpudist
