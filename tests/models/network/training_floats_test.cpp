#include "models/network/network_config.hpp"

#include <gtest/gtest.h>

#include "data/schema/feature_schema.hpp"
#include "tests/models/layers/layer_case.hpp"

namespace tpudist {
namespace {

NetworkConfig network(const std::string& blocks) {
  ConfigDocument document = ConfigDocument::parse(
      "encoder: {width: 8}\nblocks: " + blocks + "\nreadout: {pool: sum}\n", "network.yaml");
  NetworkConfig config = NetworkConfig::read(document.root());
  document.finish();
  return config;
}

// Numbers for each of the six rows of a dense plan at every depth.
double floats_of_row(const NetworkConfig& config, bool recompute) {
  const test::LayerGraph graph{3, 2, 2, {1, 0, 2, 1}, {1}, {0, 1, 2}, {0, 1}};
  const Plan plan = test::dense_plan_of(graph, config.plan_shape());
  EXPECT_EQ(plan.first_rows(), 6);
  return training_floats(config, kLayoutSchema, plan, recompute) / 6;
}

// A layer behind SAGE adds what autograd keeps of it.
TEST(TrainingFloats, CountsWhatAutogradKeeps) {
  const auto floats = [](const std::string& more) {
    return floats_of_row(
        network("[{layer: sage, width: 8, activation: relu}, {layer: activation}" + more + "]"),
        false);
  };
  EXPECT_EQ(floats(", {layer: activation}") - floats(""), 8);
  EXPECT_EQ(floats(", {layer: linear, width: 4}") - floats(""), 4);
  EXPECT_EQ(floats(", {layer: linear, width: 4, activation: relu}") - floats(""), 4 + 4);
  // The sum takes the place of its terms.
  EXPECT_EQ(floats(", {layer: residual, blocks: [{layer: activation}]}") - floats(""), 8);
}

TEST(TrainingFloats, CountsTheRowsBetweenLayersThatRunAgain) {
  const auto floats = [](int norms, bool recompute) {
    std::string blocks = "[{layer: sage, width: 8}";
    for (int i = 0; i < norms; ++i) blocks += ", {layer: layer_norm}";
    return floats_of_row(network(blocks + "]"), recompute);
  };
  EXPECT_EQ(floats(20, false) - floats(19, false), 8 + 3 * 8);
  EXPECT_EQ(floats(20, true) - floats(19, true), 8);
}

TEST(TrainingFloats, CountsEveryOtherLayerOfAStackOfSage) {
  const NetworkConfig config =
      network("[{layer: sage, width: 16}, {layer: sage, width: 32}, {layer: sage, width: 64}]");
  ASSERT_FALSE(config.is_composed());
  EXPECT_EQ(floats_of_row(config, false), 2 * (8 + 16 + 32 + 64));
  EXPECT_EQ(floats_of_row(config, true), 8 + 32 + 64 + 2 * 64);
}

}  // namespace
}  // namespace tpudist
