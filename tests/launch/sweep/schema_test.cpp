// The JSON Schemas in experiments/schema, and the shipped files that name them.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "core/config/yaml_scalar.hpp"
#include "core/config/yaml_tree.hpp"
#include "core/file_system.hpp"
#include "launch/sweep/sweep_file.hpp"
#include "tests/support/paths.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist::test {
namespace {

using Json = nlohmann::json;

std::filesystem::path experiments() {
  return source_folder() / "experiments";
}

Json json_of(const YamlValue& value) {
  Json json;
  switch (value.kind) {
    case YamlValue::Kind::null:
      return json;
    case YamlValue::Kind::list:
      json = Json::array();
      for (const YamlValue& item : value.items) json.push_back(json_of(item));
      return json;
    case YamlValue::Kind::map:
      json = Json::object();
      for (const YamlValue& item : value.items) json[item.key] = json_of(item);
      return json;
    case YamlValue::Kind::scalar:
      break;
  }
  if (value.quoted) return value.text;
  if (value.text == "true" || value.text == "false") return value.text == "true";
  if (const auto integer = parse_integer(value.text); !integer.error) return integer.value;
  if (const auto number = parse_number(value.text); !number.error && value.text != "inf")
    return number.value;
  return value.text;
}

Json json_of(const std::string& yaml) {
  YamlMistakes mistakes;
  const auto source = std::make_shared<YamlLocation::Source>(YamlLocation::Source{"test"});
  return json_of(parse_yaml(yaml, source, mistakes));
}

bool has_type(const Json& value, const std::string& type) {
  return type == "object"    ? value.is_object()
         : type == "array"   ? value.is_array()
         : type == "string"  ? value.is_string()
         : type == "boolean" ? value.is_boolean()
         : type == "integer" ? value.is_number_integer()
                             : value.is_number();
}

// Whether a value fulfils a schema, by the keywords that config_schema writes.
bool fulfils(const Json& value, const Json& schema, const Json& root) {
  const auto all = [&](const Json& list, const auto& holds) {
    return std::ranges::all_of(list, holds);
  };
  const auto any = [&](const Json& list, const auto& holds) {
    return std::ranges::any_of(list, holds);
  };
  if (schema.contains("$ref")) {
    const std::string at = schema["$ref"];
    return fulfils(value, root["definitions"][at.substr(at.rfind('/') + 1)], root);
  }
  if (schema.contains("anyOf") &&
      !any(schema["anyOf"], [&](const Json& each) { return fulfils(value, each, root); }))
    return false;
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    if (!any(types, [&](const Json& type) { return has_type(value, type); })) return false;
  }
  if (schema.contains("const") && value != schema["const"]) return false;
  if (schema.contains("enum") && !any(schema["enum"], [&](const Json& x) { return x == value; }))
    return false;
  if (schema.contains("minimum") && value < schema["minimum"]) return false;
  if (schema.contains("maximum") && value > schema["maximum"]) return false;
  if (schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(),
                         std::regex(schema["pattern"].get<std::string>())))
    return false;
  if (schema.contains("required") &&
      !all(schema["required"], [&](const Json& key) { return value.contains(key); }))
    return false;
  if (schema.contains("items") &&
      !all(value, [&](const Json& item) { return fulfils(item, schema["items"], root); }))
    return false;
  if (!schema.contains("properties")) return true;
  for (const auto& [key, inner] : value.items()) {
    const bool known = schema["properties"].contains(key);
    if (!known && schema["additionalProperties"] == false) return false;
    if (known && !fulfils(inner, schema["properties"][key], root)) return false;
  }
  return true;
}

TEST(SchemaTest, FilesAreCurrent) {
  const std::filesystem::path folder = experiments() / "schema";
  const auto is_current = [&](const char* name, const std::string& schema) {
    EXPECT_TRUE(read_text_file(folder / (std::string(name) + ".json")) == schema)
        << "run: tpudist config schema " << name << " > experiments/schema/" << name << ".json";
  };
  is_current("experiment", experiment_schema());
  is_current("sweep", sweep_schema());
}

TEST(SchemaTest, EveryShippedFileNamesItsSchemaAndFulfilsIt) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(experiments())) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string text = read_text_file(entry.path());
    const std::string head = "# yaml-language-server: $schema=";
    ASSERT_TRUE(text.starts_with(head)) << entry.path();
    const auto schema =
        entry.path().parent_path() / text.substr(head.size(), text.find('\n') - head.size());
    EXPECT_EQ(schema.stem(), is_sweep_file(entry.path(), {}) ? "sweep" : "experiment");
    const Json root = Json::parse(read_text_file(schema));
    EXPECT_TRUE(fulfils(json_of(text), root, root)) << entry.path();
    if (schema.stem() == "experiment") {
      const std::string resolved = load_experiment(entry.path(), {}).resolved_yaml;
      EXPECT_TRUE(fulfils(json_of(resolved), root, root)) << entry.path() << ", resolved";
    }
    ++files;
  }
  EXPECT_GT(files, 30);
}

TEST(SchemaTest, TellsMistakes) {
  const Json root = Json::parse(experiment_schema());
  const auto is_right = [&](const std::string& yaml) { return fulfils(json_of(yaml), root, root); };
  EXPECT_TRUE(is_right("model: {blocks: [{layer: residual, blocks: [{layer: gat, heads: 2}]}]}"));
  EXPECT_TRUE(is_right("batch: {mix: fast, bias: 2}\nloss: {mse: {unit: seconds}}"));
  EXPECT_TRUE(is_right("evaluate: {slate: {configs: 8, permutations: 2}}"));
  EXPECT_TRUE(is_right("train: {steps: '${env:STEPS,9}', bad_loss_above: inf}"));
  EXPECT_TRUE(is_right("data: {collection: 'tile:xla'}\nloss: {mse: {unit: normalised}}"));
  EXPECT_TRUE(
      is_right("model: {readout: {pool: max+config_mean}}\nensemble: {vary: [init, fold]}"));
  EXPECT_TRUE(
      is_right("model: {blocks: [{layer: gin, directions: [config_consumer_to_producer]}]}"));
  EXPECT_FALSE(is_right("model: {readout: {pool: max+summ}}"));
  EXPECT_FALSE(is_right("model: {blocks: [{layer: gin, directions: [consumer]}]}"));
  EXPECT_FALSE(is_right("ensemble: {vary: [inti]}"));
  EXPECT_FALSE(is_right("trian: {steps: 9}"));
  EXPECT_FALSE(is_right("train: {steps: -1}"));
  EXPECT_FALSE(is_right("train: {steps: many}"));
  EXPECT_FALSE(is_right("batch: {mix: slow}"));
  EXPECT_FALSE(is_right("model: {blocks: [{layer: sage, heads: 2}]}"));
  EXPECT_FALSE(is_right("model: {blocks: [{layer: residual, blocks: [{layer: gta}]}]}"));
  const Json sweep = Json::parse(sweep_schema());
  EXPECT_TRUE(fulfils(json_of("experiments: a.yaml\nsweep: {seeds: [1, 2]}"), sweep, sweep));
  EXPECT_TRUE(fulfils(json_of("experiments: [a.yaml]\nsweep: {seeds: 3}"), sweep, sweep));
  EXPECT_FALSE(fulfils(json_of("experiments: {a: b}"), sweep, sweep));
  EXPECT_FALSE(fulfils(json_of("sweep: {sedes: 3}"), sweep, sweep));
}

}  // namespace
}  // namespace tpudist::test
