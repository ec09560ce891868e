#include "core/config/config_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::ordered_json;
using Settings = std::vector<std::string>;  // overrides
using Type = AcceptedValue::Type;

// All keys that the readings requested in one map.
struct Shape {
  struct Key {
    std::string name;
    std::vector<AcceptedValue> values = {};
    std::optional<std::string> fallback = {};  // YAML
    bool one_fallback = true;                  // the same in all readings
    std::unique_ptr<Shape> map = {};
    bool is_list = false;                                                    // of maps
    std::vector<std::pair<std::string, std::unique_ptr<Shape>>> items = {};  // by their first word
    std::set<std::pair<int, std::string>> tried = {};  // number of the start, value
  };
  std::vector<Key> keys = {};  // in the order of asking
  bool takes_any_key = false;

  Key& key(const std::string& name) {
    const auto found = std::ranges::find(keys, name, &Key::name);
    return found != keys.end() ? *found : keys.emplace_back(Key{name});
  }
};

// Values of a key that may lead to other keys.
std::vector<std::string> values_to_try(const AcceptedValue& accepted, const std::string& yaml) {
  if (accepted.is_list) return {};
  std::vector<std::string> values;
  for (const std::string& word : accepted.words) values.push_back(format_yaml_text(word));
  if (accepted.type == Type::boolean) values = {"false", "true"};
  const auto number = parse_integer(yaml);
  if (accepted.type == Type::integer && !number.error) {
    const bool is_most = accepted.max && static_cast<double>(number.value) >= *accepted.max;
    values.push_back(std::to_string(is_most ? number.value - 1 : number.value + 1));
  }
  return values;
}

bool has_words(const AcceptedValue& accepted) {
  return accepted.type == Type::text && !accepted.words.empty() && !accepted.is_list &&
         !accepted.joined;
}

std::string first_word(const ConfigRecord& record) {
  for (const auto& entry : record.read())
    if (has_words(entry->accepted)) return entry->yaml;
  return {};
}

class Explorer {
 public:
  explicit Explorer(const std::function<void(ConfigDocument&)>& read) : read_(read) {}

  void explore(const Settings& start) {
    ++start_;
    open_.push_back(start);
    while (!open_.empty()) {
      const Settings settings = std::move(open_.back());
      open_.pop_back();
      ConfigDocument document = ConfigDocument::parse("{}", "schema", settings);
      try {
        read_(document);
      } catch (const ConfigError&) {  // the requested keys are recorded
      }
      add(document.record(), "", root_, settings, {});
    }
  }

  const Shape& root() const { return root_; }

 private:
  void try_value(Shape::Key& key, const Settings& settings, const std::string& path,
                 const std::string& value) {
    if (!key.tried.insert({start_, value}).second) return;
    open_.push_back(settings);
    open_.back().push_back(path + "=" + value);
  }

  // `lists`: names of the lists around this map.
  void add(const ConfigRecord& record, const std::string& prefix, Shape& shape,
           const Settings& settings, const std::set<std::string>& lists) {
    shape.takes_any_key = shape.takes_any_key || record.takes_any_key();
    for (const auto& entry : record.read()) {
      const std::string path = prefix + entry->key;
      Shape::Key& key = shape.key(entry->key);
      switch (entry->kind) {
        case ConfigRecord::Kind::value:
          add_value(*entry, key, path, settings);
          break;
        case ConfigRecord::Kind::map:
          if (!key.map) key.map = std::make_unique<Shape>();
          add(*entry->map, path + ".", *key.map, settings, lists);
          break;
        case ConfigRecord::Kind::list:
          add_items(*entry, key, path, settings, lists);
          break;
      }
      if (record.asks_kind(entry->key) && entry->accepted.words.empty())
        for (const char* value : {"1", "[1]", "{}"}) try_value(key, settings, path, value);
    }
    for (const std::string& name : record.unread())
      try_value(shape.key(name), settings, prefix + name, "{}");
  }

  void add_value(const ConfigRecord::Entry& entry, Shape::Key& key, const std::string& path,
                 const Settings& settings) {
    if (std::ranges::find(key.values, entry.accepted) == key.values.end())
      key.values.push_back(entry.accepted);
    if (!entry.is_default) return;
    key.one_fallback = key.one_fallback && (!key.fallback || *key.fallback == entry.yaml);
    key.fallback = entry.yaml;
    for (const std::string& value : values_to_try(entry.accepted, entry.yaml))
      if (value != entry.yaml) try_value(key, settings, path, value);
  }

  void add_items(const ConfigRecord::Entry& entry, Shape::Key& key, const std::string& path,
                 const Settings& settings, const std::set<std::string>& lists) {
    key.is_list = true;
    if (lists.contains(key.name)) return;
    if (entry.items.empty()) return try_value(key, settings, path, "[{}]");
    const std::string word = first_word(*entry.items[0]);
    auto found = std::ranges::find(key.items, word, [](const auto& item) { return item.first; });
    if (found == key.items.end())
      found = key.items.insert(found, {word, std::make_unique<Shape>()});
    std::set<std::string> inner = lists;
    inner.insert(key.name);
    add(*entry.items[0], path + ".0.", *found->second, settings, inner);
  }

  const std::function<void(ConfigDocument&)>& read_;
  int start_ = 0;
  std::vector<Settings> open_;
  Shape root_;
};

Json limit_of(const AcceptedValue& accepted, double limit) {
  return accepted.type == Type::integer ? Json(static_cast<std::int64_t>(limit)) : Json(limit);
}

// Adds all schemas that a value may fulfil.
void add_alternatives(const AcceptedValue& accepted, std::vector<Json>& alternatives) {
  const auto add = [&](const Json& schema) {
    if (std::ranges::find(alternatives, schema) == alternatives.end())
      alternatives.push_back(schema);
  };
  if (accepted.is_list) {
    AcceptedValue item = accepted;
    item.is_list = false;
    std::vector<Json> of_item;
    add_alternatives(item, of_item);
    add({{"type", "array"},
         {"items", of_item.size() == 1 ? of_item[0] : Json{{"anyOf", of_item}}}});
    return;
  }
  static const Json variable = {{"$ref", "#/definitions/variable"}};
  switch (accepted.type) {
    case Type::any:
      return add(Json::object());
    case Type::text:
      if (accepted.words.empty()) return add({{"type", {"string", "number", "boolean"}}});
      if (accepted.joined) {
        const std::string word = "(" + join(accepted.words, "|") + ")";
        add({{"type", "string"}, {"pattern", fmt::format("^{0}(\\+{0})*$", word)}});
      } else {
        add({{"enum", accepted.words}});
      }
      return add(variable);
    case Type::boolean:
      add({{"type", "boolean"}});
      return add(variable);
    case Type::integer:
    case Type::number:
      Json number = {{"type", accepted.type == Type::integer ? "integer" : "number"}};
      if (accepted.min) number["minimum"] = limit_of(accepted, *accepted.min);
      if (accepted.max) number["maximum"] = limit_of(accepted, *accepted.max);
      add(number);
      std::vector<std::string> words = accepted.words;
      if (accepted.type == Type::number && !accepted.max) words.push_back("inf");
      if (accepted.type == Type::number && !accepted.min) words.push_back("-inf");
      if (!words.empty()) add({{"enum", words}});
      if (accepted.bytes)
        add({{"type", "string"}, {"pattern", "^[0-9]*\\.?[0-9]+ ?(kB|[MGT]B|[KMGT]iB)$"}});
      add(variable);
  }
}

// A default as JSON; nothing for lists.
std::optional<Json> default_of(const AcceptedValue& accepted, const std::string& yaml) {
  if (accepted.is_list || accepted.type == Type::any) return std::nullopt;
  if (accepted.type == Type::boolean) return Json(yaml == "true");
  if (accepted.type == Type::integer && !parse_integer(yaml).error)
    return Json(parse_integer(yaml).value);
  if (accepted.type == Type::number && std::isfinite(parse_number(yaml).value))
    return Json(parse_number(yaml).value);
  return yaml.starts_with('"') ? Json::parse(yaml) : Json(yaml);
}

class Writer {
 public:
  Json object_of(const Shape& shape) {
    Json properties = Json::object();
    for (const Shape::Key& key : shape.keys) properties[key.name] = value_of(key);
    return {{"type", "object"},
            {"properties", properties},
            {"additionalProperties", shape.takes_any_key}};
  }

  Json definitions = Json::object();

 private:
  Json value_of(const Shape::Key& key) {
    std::vector<Json> alternatives;
    for (const AcceptedValue& value : key.values) add_alternatives(value, alternatives);
    if (key.map) alternatives.push_back(object_of(*key.map));
    if (key.is_list) alternatives.push_back(list_of(key));
    if (alternatives.empty()) return Json::object();
    Json schema = alternatives.size() == 1 ? alternatives[0] : Json{{"anyOf", alternatives}};
    if (key.fallback && key.one_fallback && !key.values.empty()) {
      if (auto value = default_of(key.values[0], *key.fallback)) schema["default"] = *value;
    }
    return schema;
  }

  // The items are a definition, since the list may contain a list of the same kind.
  Json list_of(const Shape::Key& key) {
    if (!key.items.empty()) {
      Json kinds = Json::array();
      for (const auto& [word, shape] : key.items) {
        Json item = object_of(*shape);
        require_word(*shape, word, item);
        kinds.push_back(item);
      }
      definitions[key.name] = {{"anyOf", kinds}};
    }
    return {{"type", "array"}, {"items", {{"$ref", "#/definitions/" + key.name}}}};
  }

  // Requires this word of an item. An item may leave out the default.
  static void require_word(const Shape& shape, const std::string& word, Json& item) {
    const auto key = std::ranges::find_if(shape.keys, [](const Shape::Key& each) {
      return !each.values.empty() && has_words(each.values[0]);
    });
    if (key == shape.keys.end()) return;
    item["properties"][key->name] = {{"const", word}};
    if (key->fallback != word) item["required"] = Json::array({key->name});
  }
};

}  // namespace

std::string config_schema(const std::string& title, const std::vector<std::string>& starts,
                          const std::function<void(ConfigDocument&)>& read) {
  Explorer explorer(read);
  explorer.explore({});
  for (const std::string& start : starts) explorer.explore({start});
  Writer writer;
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  schema.update(writer.object_of(explorer.root()));
  schema["properties"]["include"] = {
      {"anyOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}}};
  writer.definitions["variable"] = {{"type", "string"}, {"pattern", "\\$\\{env:"}};
  schema["definitions"] = writer.definitions;
  return schema.dump(1) + "\n";
}

}  // namespace tpudist
