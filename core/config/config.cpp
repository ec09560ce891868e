#include "core/config/config.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/config/config_source.hpp"
#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"

namespace tpudist {

using Type = AcceptedValue::Type;

// Records only the limits that exclude a finite value. A number without limits may be infinite.
template <typename T>
AcceptedValue accept(Type type, const Limits<T>& limits) {
  AcceptedValue accepted{type};
  const auto is_limit = [](T value) {
    return std::isfinite(static_cast<double>(value)) && value != Limits<T>().min &&
           value != Limits<T>().max;
  };
  if (is_limit(limits.min)) accepted.min = static_cast<double>(limits.min);
  if (is_limit(limits.max)) accepted.max = static_cast<double>(limits.max);
  return accepted;
}

// Reads one map: looks values up, checks them, and records mistakes and results.
struct ConfigNode::Impl {
  YamlMistakes& mistakes;
  const YamlValue* map;  // null where the document does not give it
  ConfigRecord& record;
  std::string path;
  YamlLocation place;  // of this map, or of the nearest enclosing one that is given

  std::string name_of(std::string_view key) const {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }

  const YamlValue* find(std::string_view key) const {
    record.know(key);
    return map ? map->find(key) : nullptr;
  }

  void wrong(const YamlValue& value, const std::string& name, std::string_view message) {
    mistakes.add(value.place, fmt::format("\"{}\" {}", name, message));
  }

  // Returns and records the value under `key` as `parse(value, name)` reads it, or the fallback.
  template <typename T, typename Parse>
  T read(std::string_view key, const T& fallback, AcceptedValue accepted, const Parse& parse) {
    const YamlValue* const entry = find(key);
    std::optional<T> result;
    if (entry && usable(*entry, name_of(key))) result = parse(*entry, name_of(key));
    if (!result) result.emplace(fallback);
    record.note(key, to_yaml(*result), *result == fallback, std::move(accepted));
    return *std::move(result);
  }

  template <typename T, typename Parse>
  std::vector<T> read_list(std::string_view key, const std::vector<T>& fallback,
                           AcceptedValue accepted, const Parse& parse) {
    accepted.is_list = true;
    return read(key, fallback, std::move(accepted),
                [&](const YamlValue& list, const std::string& name) {
                  std::optional<std::vector<T>> values;
                  if (is_list(list, name)) values = parse_items<T>(list, name, parse);
                  return values;
                });
  }

  template <typename T, typename Parse>
  std::vector<T> parse_items(const YamlValue& list, const std::string& name, const Parse& parse) {
    std::vector<T> values;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const std::string item = fmt::format("{}.{}", name, i);
      if (!usable(list.items[i], item)) continue;
      if (std::optional<T> value = parse(list.items[i], item)) values.push_back(std::move(*value));
    }
    return values;
  }

  // False if an earlier mistake, or a missing value, makes reading pointless.
  bool usable(const YamlValue& value, const std::string& name) {
    if (value.kind == YamlValue::Kind::null) wrong(value, name, "has no value");
    return value.kind != YamlValue::Kind::null && !value.unusable;
  }

  bool is_list(const YamlValue& value, const std::string& name) {
    if (value.kind == YamlValue::Kind::list) return true;
    wrong(value, name, fmt::format("must be a list, e.g. [a, b], but {}", describe(value)));
    return false;
  }

  // The list under `key`; null, perhaps with a mistake, if there is none.
  const YamlValue* find_list(std::string_view key) {
    const YamlValue* entry = find(key);
    const std::string name = name_of(key);
    return entry && usable(*entry, name) && is_list(*entry, name) ? entry : nullptr;
  }

  template <typename T>
  std::optional<T> parse_within(const YamlValue& value, const std::string& name,
                                const Limits<T>& limits, std::string_view what,
                                ParsedScalar<T> (*parse)(std::string_view)) {
    ParsedScalar<T> parsed{{}, std::errc::invalid_argument};
    if (value.kind == YamlValue::Kind::scalar && !value.quoted) parsed = parse(value.text);
    if (parsed.error == std::errc::invalid_argument) {
      wrong(value, name, fmt::format("must be {}, but {}", what, describe(value)));
    } else if (parsed.error == std::errc::result_out_of_range || !within(parsed.value, limits)) {
      const std::string range = describe(limits);
      wrong(value, name,
            range.empty() ? describe(value) + ", which is out of range"
                          : fmt::format("must be {}, but {}", range, describe(value)));
    } else {
      return parsed.value;
    }
    return std::nullopt;
  }

  // Functions (value, its name) -> the value as read; nothing after a mistake.
  template <typename T>
  auto limited(const Limits<T>& limits, std::string_view what,
               ParsedScalar<T> (*parse)(std::string_view)) {
    return [=, this](const YamlValue& value, const std::string& name) {
      return parse_within(value, name, limits, what, parse);
    };
  }

  auto boolean() {
    return [this](const YamlValue& value, const std::string& name) -> std::optional<bool> {
      const bool plain = value.kind == YamlValue::Kind::scalar && !value.quoted;
      if (plain && value.text == "true") return true;
      if (plain && value.text == "false") return false;
      wrong(value, name, fmt::format("must be true or false, but {}", describe(value)));
      return std::nullopt;
    };
  }

  auto text() {
    return [this](const YamlValue& value, const std::string& name) -> std::optional<std::string> {
      if (value.kind == YamlValue::Kind::scalar) return value.text;
      wrong(value, name, fmt::format("must be a text, but {}", describe(value)));
      return std::nullopt;
    };
  }

  auto choice(const std::vector<std::string>& allowed) {
    return [&](const YamlValue& value, const std::string& name) -> std::optional<std::string> {
      const bool scalar = value.kind == YamlValue::Kind::scalar;
      if (scalar && std::ranges::find(allowed, value.text) != allowed.end()) return value.text;
      std::string message = fmt::format("must be {}{}, but {}", allowed.size() > 1 ? "one of " : "",
                                        join(allowed, ", "), describe(value));
      const std::string nearest = scalar ? nearest_of(value.text, allowed) : "";
      if (!nearest.empty()) message += fmt::format("; did you mean \"{}\"?", nearest);
      wrong(value, name, message);
      return std::nullopt;
    };
  }

  auto joined(const std::vector<std::string>& allowed) {
    return [&](const YamlValue& value, const std::string& name) -> std::optional<std::string> {
      const std::optional<std::string> all = text()(value, name);
      if (!all) return std::nullopt;
      YamlValue word = value;
      std::set<std::string> seen;
      for (const std::string& each : split(*all, '+')) {
        word.text = each;
        if (!choice(allowed)(word, name)) return std::nullopt;
        if (seen.insert(each).second) continue;
        wrong(value, name, fmt::format("names {} twice", each));
        return std::nullopt;
      }
      return all;
    };
  }

  // The node of a map `value` (null: not given) whose path is `name`.
  ConfigNode node(const YamlValue* value, ConfigRecord& its_record, std::string name) {
    if (value && !usable(*value, name)) value = nullptr;
    if (value && !value->is_map()) {
      wrong(*value, name, fmt::format("must be a map of keys, but {}", describe(*value)));
      value = nullptr;
    }
    return ConfigNode(std::make_shared<Impl>(
        Impl{mistakes, value, its_record, std::move(name), value ? value->place : place}));
  }
};

ConfigDocument ConfigDocument::load(const std::filesystem::path& path,
                                    const std::vector<std::string>& overrides) {
  ConfigDocument document;
  document.impl_->tree = load_config_tree(path, overrides, document.impl_->mistakes);
  return document;
}

ConfigDocument ConfigDocument::parse(std::string_view text, std::string_view name,
                                     const std::vector<std::string>& overrides) {
  ConfigDocument document;
  document.impl_->tree = parse_config_tree(text, name, overrides, document.impl_->mistakes);
  return document;
}

ConfigNode ConfigDocument::root() {
  return ConfigNode(std::make_shared<ConfigNode::Impl>(
      ConfigNode::Impl{impl_->mistakes, &impl_->tree, impl_->record, "", impl_->tree.place}));
}

void ConfigDocument::finish() {
  YamlMistakes mistakes = impl_->mistakes;
  impl_->record.find_unknown(impl_->tree, "", impl_->record, mistakes);
  if (!mistakes.empty()) throw ConfigError(mistakes.to_string());
}

std::string ConfigDocument::resolved_yaml() const {
  const std::string text = impl_->record.to_yaml(0);
  return text.empty() ? "{}\n" : text;
}

std::vector<ConfigEntry> ConfigDocument::entries() const {
  std::vector<ConfigEntry> entries;
  impl_->record.add_entries("", entries);
  return entries;
}

const ConfigRecord& ConfigDocument::record() const {
  return impl_->record;
}

std::uint64_t ConfigDocument::hash() const {
  return hash64(resolved_yaml());
}

ConfigNode::ConfigNode(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

bool ConfigNode::has(std::string_view key) const {
  return impl_->find(key) != nullptr;
}

std::string ConfigNode::kind(std::string_view key) const {
  const YamlValue* entry = impl_->find(key);
  impl_->record.ask_kind(key);
  if (!entry) return "absent";
  if (entry->kind == YamlValue::Kind::list) return "list";
  return entry->is_map() ? "map" : "scalar";
}

std::vector<std::string> ConfigNode::keys() const {
  std::vector<std::string> keys;
  impl_->record.take_any_key();
  if (!impl_->map) return keys;
  for (const YamlValue& item : impl_->map->items) keys.push_back(item.key);
  return keys;
}

std::int64_t ConfigNode::integer(std::string_view key, std::int64_t fallback,
                                 Limits<std::int64_t> limits) {
  return impl_->read(key, fallback, accept(Type::integer, limits),
                     impl_->limited(limits, "an integer", parse_integer));
}

std::int64_t ConfigNode::bytes(std::string_view key, std::int64_t fallback,
                               Limits<std::int64_t> limits) {
  AcceptedValue accepted = accept(Type::integer, limits);
  accepted.bytes = true;
  return impl_->read(key, fallback, accepted,
                     impl_->limited(limits, "a number of bytes, e.g. 4GB or 512MiB", parse_bytes));
}

double ConfigNode::number(std::string_view key, double fallback, Limits<double> limits) {
  return impl_->read(key, fallback, accept(Type::number, limits),
                     impl_->limited(limits, "a number", parse_number));
}

bool ConfigNode::boolean(std::string_view key, bool fallback) {
  return impl_->read(key, fallback, {Type::boolean}, impl_->boolean());
}

std::string ConfigNode::text(std::string_view key, std::string_view fallback) {
  return impl_->read(key, std::string(fallback), {Type::text}, impl_->text());
}

std::string ConfigNode::choice(std::string_view key, std::string_view fallback,
                               const std::vector<std::string>& words) {
  return impl_->read(key, std::string(fallback), {.type = Type::text, .words = words},
                     impl_->choice(words));
}

std::int64_t ConfigNode::integer_or_auto(std::string_view key, std::int64_t auto_value,
                                         Limits<std::int64_t> limits) {
  using IntegerOrAuto = std::optional<std::int64_t>;
  AcceptedValue accepted = accept(Type::integer, limits);
  accepted.words = {"auto"};
  const auto parse = [&](const YamlValue& value, const std::string& name) {
    if (value.kind == YamlValue::Kind::scalar && value.text == "auto")
      return std::make_optional(IntegerOrAuto());
    const auto integer = impl_->limited(limits, "an integer or auto", parse_integer)(value, name);
    return integer ? std::make_optional(integer) : std::nullopt;
  };
  return impl_->read(key, IntegerOrAuto(), std::move(accepted), parse).value_or(auto_value);
}

std::vector<std::int64_t> ConfigNode::integers(std::string_view key,
                                               std::vector<std::int64_t> fallback,
                                               Limits<std::int64_t> limits) {
  return impl_->read_list(key, fallback, accept(Type::integer, limits),
                          impl_->limited(limits, "an integer", parse_integer));
}

std::vector<double> ConfigNode::numbers(std::string_view key, std::vector<double> fallback,
                                        Limits<double> limits) {
  return impl_->read_list(key, fallback, accept(Type::number, limits),
                          impl_->limited(limits, "a number", parse_number));
}

std::vector<std::string> ConfigNode::texts(std::string_view key,
                                           std::vector<std::string> fallback) {
  return impl_->read_list(key, fallback, {Type::text}, impl_->text());
}

std::vector<std::string> ConfigNode::words(std::string_view key, std::vector<std::string> fallback,
                                           const std::vector<std::string>& allowed) {
  return impl_->read_list(key, fallback, {.type = Type::text, .words = allowed},
                          impl_->choice(allowed));
}

std::vector<std::string> ConfigNode::joined_words(std::string_view key, std::string_view fallback,
                                                  const std::vector<std::string>& allowed) {
  return split(
      impl_->read(key, std::string(fallback),
                  {.type = Type::text, .words = allowed, .joined = true}, impl_->joined(allowed)),
      '+');
}

std::vector<std::string> ConfigNode::text_set(std::string_view key, std::string_view fallback) {
  if (kind(key) != "list") return {text(key, fallback)};
  auto texts =
      impl_->parse_items<std::string>(*impl_->find(key), impl_->name_of(key), impl_->text());
  std::ranges::sort(texts);
  const bool is_default = texts.size() == 1 && texts.front() == fallback;
  impl_->record.note(key, texts.size() == 1 ? to_yaml(texts.front()) : to_yaml(texts), is_default,
                     {.type = Type::text, .is_list = true});
  return texts;
}

std::string ConfigNode::yaml(std::string_view key) {
  const YamlValue* entry = impl_->find(key);
  if (!entry || !impl_->usable(*entry, impl_->name_of(key))) return {};
  std::string text = to_yaml(*entry);
  impl_->record.note(key, text, false);
  return text;
}

std::vector<std::string> ConfigNode::yaml_items(std::string_view key) {
  const YamlValue* list = impl_->find_list(key);
  if (!list) return {};
  impl_->record.note(key, to_yaml(*list), false, {.is_list = true});
  return impl_->parse_items<std::string>(
      *list, impl_->name_of(key),
      [](const YamlValue& item, const std::string&) { return std::optional(to_yaml(item)); });
}

void ConfigNode::require(std::string_view key) {
  if (impl_->find(key)) return;
  const std::string where = impl_->path.empty() ? "" : fmt::format(" in \"{}\"", impl_->path);
  impl_->mistakes.add(impl_->place, fmt::format("the key \"{}\" is missing{}", key, where));
}

ConfigNode ConfigNode::child(std::string_view key) {
  const YamlValue* entry = impl_->find(key);
  ConfigRecord& record = impl_->record.map(key, entry != nullptr);
  return impl_->node(entry, record, impl_->name_of(key));
}

std::vector<ConfigNode> ConfigNode::items(std::string_view key) {
  const YamlValue* list = impl_->find_list(key);
  const std::size_t size = list ? list->items.size() : 0;
  const std::vector<ConfigRecord*> records = impl_->record.list(key, size);
  std::vector<ConfigNode> nodes;
  for (std::size_t i = 0; i < size; ++i) {
    nodes.push_back(
        impl_->node(&list->items[i], *records[i], fmt::format("{}.{}", impl_->name_of(key), i)));
  }
  return nodes;
}

void ConfigNode::mistake(std::string_view key, std::string_view message) {
  const YamlValue* entry = impl_->find(key);
  impl_->mistakes.add(entry ? entry->key_place : impl_->place,
                      fmt::format("\"{}\" {}", impl_->name_of(key), message));
}

std::string describe(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null:
      return "has no value";
    case YamlValue::Kind::list:
      return "is a list";
    case YamlValue::Kind::map:
      return "is a map";
    case YamlValue::Kind::scalar:
      break;
  }
  return fmt::format("is {}{}", value.quoted ? "the quoted text " : "", quote_briefly(value.text));
}

std::string to_yaml(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string to_yaml(double value) {
  return format_number(value);
}
std::string to_yaml(bool value) {
  return value ? "true" : "false";
}
std::string to_yaml(const std::string& value) {
  return format_yaml_text(value);
}

std::string to_yaml(const std::optional<std::int64_t>& value) {
  return value ? to_yaml(*value) : "auto";
}

std::string to_yaml(const YamlValue& value) {
  std::vector<std::string> pieces;
  switch (value.kind) {
    case YamlValue::Kind::null:
      return "null";
    case YamlValue::Kind::list:
      for (const YamlValue& item : value.items) pieces.push_back(to_yaml(item));
      return fmt::format("[{}]", join(pieces, ", "));
    case YamlValue::Kind::map:
      for (const YamlValue& item : value.items)
        pieces.push_back(fmt::format("{}: {}", format_yaml_text(item.key), to_yaml(item)));
      return fmt::format("{{{}}}", join(pieces, ", "));
    case YamlValue::Kind::scalar:
      break;
  }
  // An unquoted value may be a number or a boolean and stays one; .nan is refused as text.
  const bool plain = !value.quoted && (!parse_number(value.text).error || value.text == "true" ||
                                       value.text == "false" || value.text == ".nan");
  return plain ? value.text : format_yaml_text(value.text);
}

}  // namespace tpudist
