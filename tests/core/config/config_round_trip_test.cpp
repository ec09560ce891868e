#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/config/config.hpp"
#include "core/config/yaml_scalar.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;
using Value = std::variant<std::int64_t, double, bool, std::string, Integers, Numbers, Texts>;

std::string to_yaml(std::int64_t value) {
  return std::to_string(value);
}
std::string to_yaml(double value) {
  return fmt::format("{:.17g}", value);
}
std::string to_yaml(bool value) {
  return value ? "true" : "false";
}
std::string to_yaml(const std::string& value) {
  return format_yaml_text(value);
}
template <typename T>
std::string to_yaml(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values)
    text += fmt::format("{}{}", text.empty() ? "" : " , ", to_yaml(value));
  return fmt::format("[ {} ]", text);
}

Value read(ConfigNode& node, const std::string& key, const Value& like) {
  struct Reader {
    ConfigNode& node;
    const std::string& key;
    Value operator()(std::int64_t) const { return node.integer(key, 42); }
    Value operator()(double) const { return node.number(key, 0.5); }
    Value operator()(bool) const { return node.boolean(key, false); }
    Value operator()(const std::string&) const { return node.text(key, "default"); }
    Value operator()(const Integers&) const { return node.integers(key, {1}); }
    Value operator()(const Numbers&) const { return node.numbers(key, {0.5}); }
    Value operator()(const Texts&) const { return node.texts(key, {"default"}); }
  };
  return std::visit(Reader{node, key}, like);
}

rc::Gen<std::string> any_text() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(Texts{
                          "a",  "B", "7",      " ",    ":",    "#",      "-",          "'",   "\"",
                          "\\", "{", "}",      "[",    "]",    ",",      "\n",         "\t",  "*",
                          "&",  "$", "${env:", "null", "true", "\u00e9", "\U0001F600", "\x01"})),
                      [](const Texts& pieces) { return fmt::format("{}", fmt::join(pieces, "")); });
}

rc::Gen<double> any_number() {
  return rc::gen::oneOf(rc::gen::suchThat(rc::gen::map(rc::gen::arbitrary<std::uint64_t>(),
                                                       [](std::uint64_t bits) {
                                                         double value;
                                                         std::memcpy(&value, &bits, sizeof value);
                                                         return value;
                                                       }),
                                          [](double value) { return !std::isnan(value); }),
                        rc::gen::map(rc::gen::inRange(-1000, 1000), [](int n) { return n / 8.; }),
                        rc::gen::element<double>(INFINITY, -INFINITY, 0., -0., 1e15, 1e14));
}

rc::Gen<Value> any_value() {
  const auto value = [](auto gen) {
    return rc::gen::map(std::move(gen), [](auto inner) { return Value(std::move(inner)); });
  };
  return rc::gen::oneOf(value(rc::gen::arbitrary<std::int64_t>()), value(any_number()),
                        value(rc::gen::arbitrary<bool>()), value(any_text()),
                        value(rc::gen::container<Integers>(rc::gen::arbitrary<std::int64_t>())),
                        value(rc::gen::container<Numbers>(any_number())),
                        value(rc::gen::container<Texts>(any_text())));
}

// A key of the configuration: its map, its name in it, what it is set to, and where.
struct Setting {
  enum Route { file, included, overridden, environment, routes };
  std::string map, key;
  Value value;
  int route;
  std::string path() const { return map.empty() ? key : map + "." + key; }
};

std::vector<Setting> any_settings() {
  std::map<std::string, Setting> settings;  // by path, so that each is set once
  const int count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) {
    Setting setting{*rc::gen::element<std::string>("", "data", "data.exclude", "model"),
                    fmt::format("k{}", *rc::gen::inRange(0, 20)), *any_value(),
                    *rc::gen::inRange<int>(0, Setting::routes)};
    // The environment gives one plain or quoted word.
    const bool one_word = std::holds_alternative<std::int64_t>(setting.value) ||
                          std::holds_alternative<bool>(setting.value);
    if (setting.route == Setting::environment && !one_word) setting.route = Setting::file;
    settings.emplace(setting.path(), setting);
  }
  std::vector<Setting> list;
  for (auto& [path, setting] : settings) list.push_back(std::move(setting));
  return list;
}

// Lines "map: {key: value}" would give a map twice, so each map of a file is written at once.
std::string file_of(const std::vector<Setting>& settings, bool included) {
  std::map<std::string, std::string> maps;
  for (const Setting& setting : settings) {
    std::string yaml = std::visit([](const auto& value) { return to_yaml(value); }, setting.value);
    if (setting.route == Setting::overridden) continue;
    if (setting.route == Setting::environment)
      yaml = fmt::format("${{env:TPUDIST_TEST_UNSET,{}}}", yaml);
    if ((setting.route == Setting::included) != included) continue;
    const std::string margin(setting.map.empty() ? 0 : setting.map == "data.exclude" ? 4 : 2, ' ');
    maps[setting.map] += fmt::format("{}{}: {}\n", margin, setting.key, yaml);
  }
  std::string text = included ? "" : "include: base.yaml\n";
  text += maps[""];
  if (!maps["model"].empty()) text += fmt::format("model:\n{}", maps["model"]);
  if (!maps["data"].empty() || !maps["data.exclude"].empty())
    text += fmt::format("data:\n{}", maps["data"]);
  if (!maps["data.exclude"].empty()) text += fmt::format("  exclude:\n{}", maps["data.exclude"]);
  return text;
}

// Reads all settings in their order and expects their values.
void read_all(ConfigDocument& document, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    ConfigNode node = document.root();
    if (setting.map == "data" || setting.map == "data.exclude") node = node.child("data");
    if (setting.map == "data.exclude") node = node.child("exclude");
    if (setting.map == "model") node = node.child("model");
    RC_ASSERT(read(node, setting.key, setting.value) == setting.value);
  }
  document.finish();
}

RC_GTEST_PROP(ConfigRoundTrip, TheResolvedConfigDoesNotDependOnTheRoute, ()) {
  const std::vector<Setting> settings = any_settings();
  const test::TempDir folder;
  std::ofstream(folder / "base.yaml") << file_of(settings, true);
  std::ofstream(folder / "main.yaml") << file_of(settings, false);
  std::vector<std::string> overrides;
  for (const Setting& setting : settings) {
    if (setting.route != Setting::overridden) continue;
    const std::string yaml =
        std::visit([](const auto& value) { return to_yaml(value); }, setting.value);
    overrides.push_back(fmt::format("{}={}", setting.path(), yaml));
  }

  ConfigDocument document = ConfigDocument::load(folder / "main.yaml", overrides);
  read_all(document, settings);
  const std::string resolved = document.resolved_yaml();

  ConfigDocument again = ConfigDocument::parse(resolved, "resolved.yaml");
  read_all(again, settings);
  RC_ASSERT(again.resolved_yaml() == resolved);
  RC_ASSERT(again.entries() == document.entries());
  RC_ASSERT(again.hash() == document.hash());
}

// Defaults are as good as values that are written out.
RC_GTEST_PROP(ConfigRoundTrip, DefaultsAreWrittenOut, ()) {
  const std::vector<Setting> settings = any_settings();
  const auto read_defaults = [&](ConfigDocument& document) {
    for (const Setting& setting : settings) {
      ConfigNode node = document.root().child("map");
      read(node, setting.path(), setting.value);
    }
    document.root().items("items");
    document.finish();
  };
  ConfigDocument empty = ConfigDocument::parse("", "empty.yaml");
  read_defaults(empty);
  ConfigDocument again = ConfigDocument::parse(empty.resolved_yaml(), "resolved.yaml");
  read_defaults(again);
  RC_ASSERT(again.resolved_yaml() == empty.resolved_yaml());
}

TEST(ConfigRoundTrip, HoldsForListsOfMapsAndFreeKeys) {
  const auto read_it = [](ConfigDocument& document) {
    for (ConfigNode& block : document.root().items("blocks")) {
      block.text("kind", "sage");
      for (ConfigNode& inner : block.items("inner")) inner.child("deep").integer("x", 1);
      block.child("norm");
    }
    ConfigNode loss = document.root().child("loss");
    for (const std::string& name : loss.keys()) loss.child(name).number("weight", 1);
    document.finish();
    return document.resolved_yaml();
  };
  ConfigDocument document = ConfigDocument::parse(
      "loss: {mse: {}, \"odd: key\": {weight: 0.1}}\n"
      "blocks: [{kind: gat}, {inner: [{}, {deep: {x: 2}}]}, {norm: {}}]\n",
      "first.yaml");
  const std::string resolved = read_it(document);
  ConfigDocument again = ConfigDocument::parse(resolved, "resolved.yaml");
  EXPECT_EQ(read_it(again), resolved);
  EXPECT_EQ(resolved, R"(blocks:
  - kind: gat
    inner: []
  - kind: sage
    inner:
      - deep:
          x: 1
      - deep:
          x: 2
  - kind: sage
    inner: []
    norm: {}
loss:
  mse:
    weight: 1
  "odd: key":
    weight: 0.1
)");
}

}  // namespace
}  // namespace tpudist
