#include "core/config/config_schema.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace tpudist::test {
namespace {

using Json = nlohmann::json;

const Json kVariable = {{"$ref", "#/definitions/variable"}};

Json schema_of(const std::function<void(ConfigNode)>& read,
               const std::vector<std::string>& starts = {}) {
  return Json::parse(config_schema("test", starts, [&](ConfigDocument& document) {
    read(document.root());
    document.finish();
  }));
}

TEST(ConfigSchemaTest, HoldsTypesLimitsWordsAndDefaults) {
  const Json schema = schema_of([](ConfigNode root) {
    root.integer("steps", 5, {1, 9});
    root.number("rate", 0.5, {0, 1});
    root.number("above", 1, {0, std::numeric_limits<double>::infinity()});
    root.boolean("flag", false);
    root.choice("kind", "a", {"a", "b"});
    root.text("name", "run");
    root.integer_or_auto("block", 0, {2, 8});
    root.integers("widths", {1}, {1, 64});
    root.bytes("size", 1 << 30, {1 << 20, std::int64_t{1} << 40});
  });
  const Json& keys = schema["properties"];
  EXPECT_EQ(keys["steps"],
            Json({{"anyOf", {{{"type", "integer"}, {"minimum", 1}, {"maximum", 9}}, kVariable}},
                  {"default", 5}}));
  EXPECT_EQ(keys["rate"]["anyOf"][0],
            Json({{"type", "number"}, {"minimum", 0.0}, {"maximum", 1.0}}));
  EXPECT_EQ(keys["above"]["anyOf"][1], Json({{"enum", {"inf"}}}));
  EXPECT_EQ(keys["flag"],
            Json({{"anyOf", {{{"type", "boolean"}}, kVariable}}, {"default", false}}));
  EXPECT_EQ(keys["kind"]["anyOf"][0], Json({{"enum", {"a", "b"}}}));
  EXPECT_EQ(keys["name"], Json({{"type", {"string", "number", "boolean"}}, {"default", "run"}}));
  EXPECT_EQ(keys["block"]["anyOf"][1], Json({{"enum", {"auto"}}}));
  EXPECT_EQ(keys["block"]["default"], "auto");
  EXPECT_EQ(keys["widths"]["items"]["anyOf"][0]["maximum"], 64);
  EXPECT_EQ(keys["size"]["anyOf"][0]["minimum"], 1 << 20);
  EXPECT_EQ(keys["size"]["anyOf"][1],
            Json({{"type", "string"}, {"pattern", "^[0-9]*\\.?[0-9]+ ?(kB|[MGT]B|[KMGT]iB)$"}}));
  EXPECT_EQ(schema["additionalProperties"], false);
}

TEST(ConfigSchemaTest, FindsKeysThatDependOnOthers) {
  const Json schema = schema_of(
      [](ConfigNode root) {
        if (root.choice("kind", "a", {"a", "b"}) == "b") {
          if (root.integer("count", 0, {0, 9}) > 0) root.boolean("inner", true);
        }
        if (root.has("loss")) root.child("loss").number("weight", 1);
        if (root.kind("one_or_more") == "scalar") {
          root.text("one_or_more", "");
        } else {
          root.texts("one_or_more", {});
        }
        if (root.text("collection", "layout") == "tile") root.boolean("of_tile", false);
        for (const std::string& key : root.child("any").keys()) root.child("any").yaml(key);
      },
      {"collection=tile"});
  const Json& keys = schema["properties"];
  for (const char* key : {"count", "inner", "of_tile"}) EXPECT_TRUE(keys.contains(key)) << key;
  EXPECT_TRUE(keys["loss"]["properties"].contains("weight"));
  EXPECT_EQ(keys["one_or_more"]["anyOf"].size(), 2u);
  EXPECT_EQ(keys["any"]["additionalProperties"], true);
}

void read_layers(std::vector<ConfigNode> layers) {
  for (ConfigNode layer : layers) {
    layer.integer("repeat", 1);
    const std::string kind = layer.choice("layer", "sage", {"sage", "gat", "residual"});
    if (kind == "sage") layer.integer("width", 64);
    if (kind == "gat") layer.integer("heads", 1);
    if (kind == "residual") read_layers(layer.items("layers"));
  }
}

TEST(ConfigSchemaTest, ItemsOfAListHaveTheKeysOfTheirKind) {
  const Json schema = schema_of([](ConfigNode root) { read_layers(root.items("layers")); });
  const Json ref = {{"$ref", "#/definitions/layers"}};
  EXPECT_EQ(schema["properties"]["layers"], Json({{"type", "array"}, {"items", ref}}));
  const Json& kinds = schema["definitions"]["layers"]["anyOf"];
  ASSERT_EQ(kinds.size(), 3u);
  for (const Json& kind : kinds) {
    const std::string word = kind["properties"]["layer"]["const"];
    EXPECT_EQ(kind["properties"].contains("width"), word == "sage");
    EXPECT_EQ(kind["properties"].contains("heads"), word == "gat");
    EXPECT_EQ(kind.contains("required"), word != "sage") << "sage is the default";
    if (word == "residual") {
      EXPECT_EQ(kind["properties"]["layers"]["items"], ref);
    }
  }
}

}  // namespace
}  // namespace tpudist::test
