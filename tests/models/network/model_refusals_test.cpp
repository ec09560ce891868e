// What `model:` must not say: one line for each mistake, with file, line and column, and what is
// allowed; whatever it says, reading it ends well.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/layers/layers.hpp"
#include "models/network/network.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

NetworkConfig read(const std::string& yaml) {
  ConfigDocument document = ConfigDocument::parse(yaml, "model.yaml");
  NetworkConfig config = NetworkConfig::read(document.root().child("model"));
  document.finish();
  return config;
}

// What reading says of it, "" when nothing.
std::string refusal(const std::string& yaml) {
  return test::message_of<ConfigError>([&] { read(yaml); });
}

// `blocks` stand on line 3.
std::string refusal_of_blocks(const std::string& blocks) {
  return refusal("model:\n  encoder: {width: 8}\n  blocks: [" + blocks + "]\n");
}

// One line at line 3 that holds all of `parts`.
void expect_line(const std::string& blocks, const std::vector<std::string>& parts) {
  const std::string text = refusal_of_blocks(blocks);
  EXPECT_THAT(text, StartsWith("model.yaml:3:")) << blocks;
  EXPECT_THAT(text, Not(HasSubstr("\n"))) << blocks;
  for (const std::string& part : parts) EXPECT_THAT(text, HasSubstr(part)) << blocks;
}

TEST(ModelRefusals, ALayerThatIsUnknown) {
  expect_line("{layer: instancenorm}", {"model.blocks.0.layer", "instance_norm", "did you mean"});
  expect_line("{layer: transformer, heads: 4, width: 16}",
              {"must be one of sage, gcn, gat, gatv2, gin", "\"transformer\""});
  expect_line("{layer: sage, width: 8}, {layer: [sage], width: 8}", {"model.blocks.1.layer"});
  expect_line("{layer: residual, blocks: [{layer: elu}]}", {"blocks.0.blocks.0.layer", "\"elu\""});
}

TEST(ModelRefusals, KeysThatALayerDoesNotTake) {
  expect_line("{layer: sage, width: 8, heads: 4}", {"unknown key \"heads\""});
  expect_line("{layer: instance_norm, width: 8}", {"unknown key \"width\" in \"model.blocks.0\""});
  expect_line("{layer: dropout, rat: 0.1}", {"unknown key \"rat\"", "did you mean"});
}

TEST(ModelRefusals, NumbersOutOfRange) {
  expect_line("{layer: sage, width: 0}", {"blocks.0.width", "between 1 and 16384"});
  expect_line("{layer: linear, width: 1000000000000}", {"between 1 and 16384"});
  expect_line("{layer: gat, width: 4096, heads: 5}", {"blocks.0.heads", "more than 16384"});
  expect_line("{layer: self_attention, width: 4096, heads: 5}", {"heads", "more than 16384"});
  expect_line("{layer: self_attention, width: 8, others: 0}", {"blocks.0.others"});
  expect_line("{layer: self_attention, width: 8, max_nodes: 20001}", {"between 1 and 20000"});
  expect_line("{layer: edge_mlp, width: 8, config_width: 4, config_columns: [3, 18]}",
              {"blocks.0.config_columns", "below 18"});
  expect_line("{layer: edge_mlp, width: 1024, config_width: 1024}", {"at most 16384"});
  expect_line("{layer: parallel, branches: [{blocks: []}]}", {"blocks.0.branches", "at least two"});
  expect_line("{layer: linear_attention, width: 513}", {"blocks.0.width", "between 1 and 512"});
  expect_line("{layer: linear_attention, width: 512, heads: 33}", {"heads", "more than 16384"});
  expect_line("{layer: gcn, width: 8, directions: []}", {"blocks.0.directions", "at least one"});
  expect_line("{layer: gcn, width: 8, normalise: right_sum}", {"blocks.0.directions", "both"});
  expect_line("{layer: pna, width: 8, directions: []}", {"blocks.0.directions", "at least one"});
  expect_line("{layer: dropout, rate: 1}", {"blocks.0.rate", "between 0 and 0.99"});
  expect_line("{layer: dropout, scope: rows}", {"blocks.0.scope", "row, element"});
  expect_line("{layer: dropout, drop: edges}", {"blocks.0.drop", "channels, nodes"});
  expect_line("{layer: dropout, rate: -0.1}", {"between 0 and 0.99"});
  expect_line("{layer: dropout, rate: nan}", {"blocks.0.rate"});
  expect_line("{layer: instance_norm, eps: 0}", {"blocks.0.eps"});
  expect_line("{layer: config_attention, temperature: 0}", {"blocks.0.temperature"});
  expect_line("{layer: channel_attention, reduction: 0}", {"blocks.0.reduction"});
  expect_line("{layer: linear}", {"width"});
  expect_line("{layer: sage, width: 8, repeat: 65}", {"blocks.0.repeat", "between 1 and 64"});
}

TEST(ModelRefusals, WidthsThatDoNotFit) {
  expect_line("{layer: residual, blocks: [{layer: sage, width: 5}]}",
              {"8 channels into 5", "project", "concat"});
  expect_line("{layer: residual, blocks: [{layer: config_attention}]}", {"8 channels into 16"});
  expect_line("{layer: residual, blocks: []}", {"give the blocks"});
  expect_line("{layer: residual}", {"give the blocks"});
  // With other channels after each, the second time around.
  expect_line(
      "{layer: sage, width: 8}, {layer: residual, repeat: 2, skip: concat, blocks: "
      "[{layer: residual, blocks: [{layer: linear, width: 8}]}]}",
      {"16 channels into 8"});
}

TEST(ModelRefusals, NetworksWithoutEnd) {
  expect_line("{layer: config_attention, repeat: 64}", {"16384", "channels"});
  expect_line("{layer: residual, repeat: 64, skip: concat, blocks: [{layer: layer_norm}]}",
              {"16384", "channels"});
  std::string nested = "{layer: layer_norm, repeat: 64}";
  for (int depth = 0; depth < 8; ++depth)
    nested = "{layer: residual, repeat: 64, blocks: [" + nested + "]}";
  expect_line(nested, {"more than 1024 layers"});
  EXPECT_EQ(read("model:\n  blocks: [{layer: residual, repeat: 16, blocks: [{layer: layer_norm, "
                 "repeat: 60}]}]\n")
                .blocks.size(),
            16u);
}

TEST(ModelRefusals, Choices) {
  expect_line("{layer: sage, width: 8, directions: [both]}",
              {"one of consumer_to_producer, producer_to_consumer", "both"});
  expect_line("{layer: sage, width: 8, aggregation: median}", {"one of mean, sum, max"});
  expect_line("{layer: sage, width: 8, join: concat, directions: []}", {"no directions"});
  expect_line("{layer: activation, kind: swish}", {"relu", "silu"});
  expect_line("{layer: residual, skip: add, blocks: [{layer: layer_norm}]}",
              {"one of identity, project, concat"});
  expect_line("{layer: linear, width: 4, bias_value: 1}", {"initialise: xavier"});
}

TEST(ModelRefusals, EncoderAndReadout) {
  const auto line = [](const std::string& model, const std::string& part) {
    const std::string text = refusal("model:\n  " + model + "\n  blocks: [{layer: layer_norm}]\n");
    EXPECT_THAT(text, AllOf(StartsWith("model.yaml:2:"), HasSubstr(part), Not(HasSubstr("\n"))))
        << model;
  };
  line("encoder: {node_columns: 0-140}", "below 140");
  line("encoder: {node_columns: 9-3}", "below 140");
  line("encoder: {node_columns: '3,3'}", "twice");
  line("encoder: {node_columns: ''}", "node_columns");
  line("encoder: {width: -1}", "between 0 and 16384");
  line("encoder: {width: 0, activation: relu}", "no linear layer");
  line("encoder: {width: 0, initialise: xavier}", "no linear layer");
  line("encoder: {width: 0, opcode_width: 16384, node_width: 16384}", "at most 16384");
  line("encoder: {config_scale: 0}", "config_scale");
  line("encoder: {node_transform: sqrt}", "raw, log, log_positive, standardised, min_max");
  line("encoder: {join: never}", "early, late");
  line("encoder: {random_walk: 65}", "between 0 and 64");
  line("encoder: {random_walk_loops: 2}", "random_walk_loops");
  line("encoder: {random_walk_loops: true}", "random_walk is 0 steps");
  line("encoder: {dimension_features: some}", "dimension_features");
  line("readout: {violation_ratio: true}", "none, output, input, kernel");
  line("readout: {violation_ratio: output, violation_order: random}", "minor_to_major");
  line("readout: {violation_ratio: output, violation_unset: 1}", "skip, fits, violates");
  line("readout: {violation_order: major_to_minor}", "violation_order");
  line("readout: {pool: median}", "sum, mean, max");
  line("readout: {pool: max+}", "sum, mean, max");
  line("readout: {pool: sum+max+sum}", "names sum twice");
  line("readout: {pool: l2_mean}", "config_l2_sum");
  line("readout: {join_config: true, config_widths: [4]}", "either this or config_widths");
  line("readout: {bias: 1}", "bias");
  line("readout: {widths: [0]}", "between 1 and 16384");
  line("readout: {scale: 0}", "scale");
}

TEST(ModelRefusals, WhatASchemaDoesNotHave) {
  const auto refused = [](const std::string& model, const FeatureSchema& schema) {
    ConfigDocument document = ConfigDocument::parse(
        "model: {blocks: [{layer: layer_norm}], " + model + "}\n", "model.yaml");
    return test::message_of<ConfigError>([&] {
      NetworkConfig::read(document.root().child("model"), schema);
      document.finish();
    });
  };
  FeatureSchema without = kLayoutSchema;
  without.dimension_columns = {};
  const std::string ratio = "readout: {violation_ratio: kernel}";
  EXPECT_EQ(refused(ratio, kLayoutSchema), "");
  for (const FeatureSchema& schema : {kTileSchema, without})
    EXPECT_THAT(refused(ratio, schema), HasSubstr("model.readout.violation_ratio"));
  FeatureSchema two = kLayoutSchema;  // tensors
  two.config_features = 12;
  EXPECT_THAT(refused(ratio, two), HasSubstr("model.readout.violation_ratio"));
  EXPECT_EQ(refused("readout: {violation_ratio: input}", two), "");
  EXPECT_THAT(refused("encoder: {dimension_features: true}", without),
              HasSubstr("names no dimension_columns"));
}

TEST(ModelRefusals, WhatACollectionDoesNotHave) {
  ThreadPool pool(1);
  const NetworkConfig config =
      read("model: {blocks: [{layer: layer_norm}], readout: {config_widths: [8]}}");
  EXPECT_THROW(Network(config, kLayoutSchema, -1, pool), ConfigError);
  EXPECT_NO_THROW(Network(config, kTileSchema, -1, pool));
  const NetworkConfig joined =
      read("model: {blocks: [{layer: layer_norm}], readout: {join_config: true}}");
  EXPECT_THAT(test::message_of<ConfigError>([&] { Network(joined, kLayoutSchema, -1, pool); }),
              HasSubstr("model.readout.join_config"));
  EXPECT_NO_THROW(Network(joined, kTileSchema, -1, pool));
}

// Pieces of YAML put together at random: either a network that can be described, or a refusal of
// which every line names its place.
TEST(ModelRefusals, EveryDocumentEndsWell) {
  const std::vector<std::string> keys = {"width",  "repeat",     "skip",   "kind",       "rate",
                                         "eps",    "reduction",  "blocks", "directions", "join",
                                         "affine", "activation", "bias",   "temperature"};
  const std::vector<std::string> values = {
      "8",    "0",    "-1",       "16384", "1e300", "nan",   "concat", "project",
      "none", "relu", "[]",       "[8]",   "{}",    "true",  "''",     "[consumer_to_producer]",
      "mean", "64",   "max+mean", "~",     "0.5",   "'\\n'", "[{}]",   "99999999999999999999"};
  std::vector<std::string> layers = layer_names();
  layers.insert(layers.end(), {"elu", "''", "[sage]", "7"});
  int good = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    CounterRng random(77, i);
    const auto one_of = [&](const std::vector<std::string>& from) {
      return from[random.below(from.size())];
    };
    const std::function<std::string(int)> list = [&](int depth) {
      std::string text = "[";
      for (std::uint64_t n = random.below(4) + (depth == 0); n > 0; --n) {
        const std::string layer = one_of(layers);
        text += "{layer: " + layer;
        std::string taken = "layer";
        const auto add = [&](const std::string& key, const std::string& value) {
          if (taken.find(key) != std::string::npos) return;
          taken += key;
          text += ", " + key + ": " + value;
        };
        if (layer == "sage" || layer == "linear" || layer == "join_config") add("width", "8");
        if (layer == "residual" && depth < 3) add("blocks", list(depth + 1));
        if (random.below(3) == 0) add(one_of(keys), one_of(values));
        text += "}" + std::string(n > 1 ? ", " : "");
      }
      return text + "]";
    };
    const std::string yaml = "model:\n  encoder: {width: 8}\n  blocks: " + list(0) + "\n";
    std::string text;
    try {
      const NetworkConfig config = read(yaml);
      EXPECT_FALSE(config.blocks.empty());
      for (const auto& block : config.blocks) EXPECT_FALSE(block->description().empty());
      config.plan_shape();
      config.work(kLayoutSchema);
      ++good;
      continue;
    } catch (const ConfigError& error) {
      text = error.what();
    }
    ++refused;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string one = text.substr(at, end - at);
      EXPECT_TRUE(one.rfind("model.yaml:", 0) == 0 || one.rfind("... and", 0) == 0) << one << "\n"
                                                                                    << yaml;
      at = end + 1;
    }
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tpudist
