#include "models/network/network_config.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/network/executor.hpp"

namespace tpudist {
namespace {

NetworkConfig read(const std::string& yaml) {
  ConfigDocument document = ConfigDocument::parse(yaml, "test.yaml");
  const NetworkConfig config = NetworkConfig::read(document.root().child("model"));
  document.finish();
  return config;
}

TEST(NetworkConfig, PresetsHaveThePublishedSizes) {
  // 270k and 2.3M, MODELS of the 2nd place's write-up.
  EXPECT_EQ(
      composed_parameters(NetworkConfig::preset("latenciaga_xla"), kLayoutSchema).parameters(),
      1440 + 2820 + 1632 + 258'944 + 257);
  EXPECT_NEAR(
      composed_parameters(NetworkConfig::preset("latenciaga_nlp"), kLayoutSchema).parameters(),
      2.3e6, 0.1e6);
  EXPECT_NEAR(
      composed_parameters(NetworkConfig::preset("latenciaga_tile"), kTileSchema).parameters(),
      2.3e6, 0.1e6);
}

TEST(NetworkConfig, ReadsPresets) {
  const NetworkConfig nlp = read("model: {preset: latenciaga_nlp}");
  EXPECT_EQ(nlp.encoder.width, 64);
  const std::vector<SageConfig> layers = nlp.sage_layers();
  ASSERT_EQ(layers.size(), 8u);
  EXPECT_TRUE(layers[1].residual);
  EXPECT_EQ(layers[7].width, 512);
  EXPECT_EQ(nlp.output_scale, 1e-3);
  const NetworkConfig tile =
      read("model: {preset: latenciaga_tile, encoder: {width: 32}, readout: {pool: mean}}");
  EXPECT_EQ(tile.encoder.width, 32);
  EXPECT_EQ(tile.output_scale, 1);
  EXPECT_EQ(tile.pools, std::vector<Pool>{Aggregation::mean});
  EXPECT_FALSE(tile.sage_layers()[1].residual);
  EXPECT_EQ(tile.plan_shape().layers.size(), 8u);
}

TEST(NetworkConfig, ReadsBlocksSpelledOut) {
  const NetworkConfig network = read(
      "model:\n"
      "  encoder: {opcode_width: 8, node_width: 16, width: 24}\n"
      "  blocks:\n"
      "    - {layer: sage, width: 48, repeat: 2, residual: true}\n"
      "    - {layer: sage, width: 5, directions: [consumer_to_producer, producer_to_consumer], "
      "aggregation: sum,\n"
      "       activation: none}\n"
      "    - {layer: sage, width: 6, directions: []}\n");
  const std::vector<SageConfig> layers = network.sage_layers();
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[1].width, 48);
  EXPECT_TRUE(layers[1].residual);
  EXPECT_EQ(layers[0].mix.edge_kinds, std::vector{EdgeKind::consumer_to_producer});
  EXPECT_EQ(layers[2].mix.edge_kinds.size(), 2u);
  EXPECT_EQ(layers[2].mix.aggregation, Aggregation::sum);
  EXPECT_EQ(layers[2].activation, Activation::none);
  EXPECT_TRUE(layers[3].mix.edge_kinds.empty());
}

TEST(NetworkConfig, NamesMistakes) {
  for (const char* yaml :
       {"model: {}", "model: {preset: latenciaga}", "model: {preset: latenciaga_xla, blcoks: []}",
        "model: {blocks: [{layer: sage}]}", "model: {blocks: [{layer: sage, width: 0}]}",
        "model: {blocks: [{layer: transformer, width: 8}]}",
        "model: {blocks: [{width: 8, directions: [sideways]}]}"}) {
    EXPECT_THROW(read(yaml), ConfigError) << yaml;
  }
  EXPECT_THROW(NetworkConfig::preset("resnet"), ConfigError);
}

TEST(NetworkConfig, RefusesNetworksThatNeverTakeTheConfiguration) {
  const auto with = [](const std::string& blocks) {
    return "model: {encoder: {join: late}, blocks: [" + blocks + "]}";
  };
  EXPECT_THROW(read(with("{layer: sage, width: 8}")), ConfigError);
  EXPECT_THROW(read("model: {preset: latenciaga_xla, encoder: {join: late}}"), ConfigError);
  EXPECT_TRUE(
      read(with("{layer: sage, width: 8}, {layer: join_config, width: 8}")).takes_configurations());
}

TEST(ParameterTable, PadsEntriesTo64Bytes) {
  ParameterTable table;
  EXPECT_EQ(table.add("a", {3, 5}), 0);
  EXPECT_EQ(table.add("b", {17}), 1);
  EXPECT_EQ(table.add("c", {1}, ParameterGroup::output), 2);
  EXPECT_EQ(table.entries()[1].offset, 16);
  EXPECT_EQ(table.find("c").offset, 48);
  EXPECT_EQ(table.find("c").group, ParameterGroup::output);
  EXPECT_EQ(table.length(), 64);
  EXPECT_EQ(table.parameters(), 33);
  EXPECT_THROW(table.find("d"), Error);
  EXPECT_THROW(table.add("a", {1}), Error);
  EXPECT_THROW(table.add("e", {0}), Error);
}

TEST(NetworkParameters, NamesAreTheStandardOnes) {
  const ParameterTable table =
      composed_parameters(NetworkConfig::preset("latenciaga_xla"), kLayoutSchema);
  std::vector<std::string> names;
  for (const ParameterEntry& entry : table.entries()) names.push_back(entry.name);
  names.resize(8);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "encoder.opcode.weight", "encoder.node.weight", "encoder.node.bias",
                "encoder.join.weight", "encoder.join.bias", "blocks.0.sage.neighbours.weight",
                "blocks.0.sage.self.weight", "blocks.0.sage.neighbours.bias"}));
  EXPECT_EQ(table.find("encoder.join.weight").shape, (std::vector<std::int64_t>{50, 32}));
  EXPECT_EQ(table.find("head.weight").shape, (std::vector<std::int64_t>{256, 1}));
  EXPECT_EQ(table.find("head.bias").group, ParameterGroup::output);
}

}  // namespace
}  // namespace tpudist
