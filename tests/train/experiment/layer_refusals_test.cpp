// What an experiment must not ask of a network of layers: one line, with file, line and column,
// that says what to write.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string refusal(const std::string& layer, const std::string& more) {
  const std::string text =
      "name: a\n"
      "data: {shards: s, collection: 'layout:xla:random'}\n"
      "loss: {list_mle: {}}\n"
      "train: {steps: 10}\n"
      "model: {blocks: [{layer: " +
      layer + "}]}\n" + more + "\n";
  return test::message_of<ConfigError>([&] {
    ConfigDocument document = ConfigDocument::parse(text, "a.yaml");
    read_experiment(document);
  });
}

void expect_line(const std::string& layer, const std::string& more, const std::string& part) {
  EXPECT_THAT(refusal(layer, more),
              AllOf(StartsWith("a.yaml:6:"), HasSubstr(part), Not(HasSubstr("\n"))))
      << layer;
}

TEST(LayerRefusals, ALayerThatTakesWholeSlates) {
  const std::string slates = "\nevaluate: {slate: {configs: 8}}";
  EXPECT_EQ(refusal("config_attention", slates), "");
  expect_line("config_attention", "batch: {config_chunk: 4}" + slates, "batch.config_chunk");
  expect_line("config_attention", "batch: {config_chunk: 4}" + slates, "auto");
  // Also inside another layer.
  expect_line("residual, skip: project, blocks: [{layer: config_attention}]",
              "batch: {config_chunk: 4}" + slates, "batch.config_chunk");
  expect_line("config_attention", "evaluate: {block_rows: 64}", "evaluate.slate");
  EXPECT_THAT(refusal("config_attention", ""), HasSubstr("evaluate.slate"));
  EXPECT_EQ(refusal("instance_norm", "batch: {config_chunk: 4}"), "");
  EXPECT_EQ(refusal("dropout, rate: 0.5", "batch: {config_chunk: 4}"), "");
}

TEST(LayerRefusals, DropoutOfElementsOnRefinedPlans) {
  expect_line("dropout, scope: element", "plan: refined", "set it to auto or dense");
  expect_line("residual, blocks: [{layer: dropout, drop: nodes, scope: element}]", "plan: refined",
              "scope: element");
  EXPECT_EQ(refusal("dropout, scope: element", "plan: auto"), "");
  EXPECT_EQ(refusal("dropout, scope: element", "plan: dense"), "");
  EXPECT_EQ(refusal("dropout, drop: nodes", "plan: refined"), "");
}

TEST(LayerRefusals, AllNetworksHavePrecisionsAndDevices) {
  EXPECT_EQ(refusal("layer_norm", "precision: tf32"), "");
  EXPECT_EQ(refusal("layer_norm", "precision: bf16"), "");
  EXPECT_EQ(refusal("layer_norm", "dist: {device: cuda}"), "");
  EXPECT_EQ(refusal("sage, width: 8", "precision: bf16"), "");
  EXPECT_EQ(refusal("sage, width: 8", "dist: {device: cuda}"), "");
}

}  // namespace
}  // namespace tpudist
