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

TEST(TrainingFloats, CountsStatesAndTheirGradients) {
  const NetworkConfig config = network(
      "[{layer: residual, blocks: [{layer: instance_norm}, {layer: sage, width: 8}]}, "
      "{layer: activation}, {layer: linear, width: 4}]");
  // The encoder, norm, sage and the sum of the residual, activation and linear.
  EXPECT_EQ(floats_of_row(config, false), 2 * (8 + (8 + 8 + 8) + 8 + 4));
  // What lies between them, and the residual's own twice.
  EXPECT_EQ(floats_of_row(config, true), 8 + 8 + 8 + 4 + 2 * (8 + 8 + 8));
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
