// What an encoder keeps with a graph: units that take it get the bits of those that do not.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/inputs/encoder.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/kernels/cpu_process.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;

// So many nodes with features of very different sizes, and small integers from column 134 on.
std::shared_ptr<GraphInput> make_graph(int nodes) {
  CounterRng random(static_cast<std::uint64_t>(nodes));
  std::vector<float> features;
  std::vector<std::uint8_t> opcodes;
  for (int node = 0; node < nodes; ++node) {
    for (int c = 0; c < kNodeFeatures; ++c) {
      features.push_back(c < 134 ? static_cast<float>(random.uniform(-1, 1) * std::pow(10.0, c % 9))
                                 : static_cast<float>(random.below(7)) - 1.0f);
    }
    opcodes.push_back(static_cast<std::uint8_t>(random.below(kOpcodes)));
  }
  return std::make_shared<GraphInput>(
      GraphArrays::of(features, opcodes, kLayoutSchema, FeatureForm::raw), kLayoutSchema);
}

UnitInput unit_of(std::vector<std::shared_ptr<const GraphInput>> graphs) {
  Plan plan;
  plan.states = 1;
  UnitInput unit;
  unit.graphs = std::move(graphs);
  unit.states.assign(kLayoutConfigFeatures, 1.0f);
  unit.plan = std::make_shared<const Plan>(std::move(plan));
  return unit;
}

// A graph of its own with what `encoder` keeps.
std::shared_ptr<const GraphInput> kept(const Encoder& encoder, int nodes) {
  const auto graph = make_graph(nodes);
  graph->set_encoded(encoder.encode(*graph, at::kFloat));
  return graph;
}

// Odd numbers of nodes and columns leave tails for the vectorised functions.
TEST(EncodedGraph, GivesTheBitsOfTransformingAnew) {
  use_one_thread_per_worker();
  for (const auto transform :
       {FeatureTransform::raw, FeatureTransform::log, FeatureTransform::log_positive,
        FeatureTransform::standardised, FeatureTransform::min_max}) {
    for (const std::int64_t code_width : {0, 4}) {
      EncoderConfig config;
      config.node_transform = transform;
      config.node_columns = {0, 5, 2, 17, 133};
      config.code_width = code_width;
      const Encoder encoder(config, kLayoutSchema);
      const UnitTensors once = encoder.prepare(
          unit_of({kept(encoder, 3), kept(encoder, 37), kept(encoder, 1)}), at::kFloat);
      const UnitTensors anew =
          encoder.prepare(unit_of({make_graph(3), make_graph(37), make_graph(1)}), at::kFloat);
      EXPECT_EQ(once.node_features.size(0), 41);
      EXPECT_TRUE(at::equal(once.node_features, anew.node_features));
      EXPECT_EQ(once.opcode->index, anew.opcode->index);
      ASSERT_EQ(once.node_codes != nullptr, code_width > 0);
      if (code_width) EXPECT_EQ(once.node_codes->index, anew.node_codes->index);
    }
  }
}

TEST(EncodedGraph, IsTakenAsItLies) {
  const Encoder encoder(EncoderConfig{}, kLayoutSchema);
  const auto graph = kept(encoder, 5);
  const UnitTensors unit = encoder.prepare(unit_of({graph}), at::kFloat);
  EXPECT_EQ(unit.node_features.const_data_ptr(), graph->encoded()->features.const_data_ptr());
  EXPECT_EQ(encoder.encoded_bytes(5), graph->encoded()->features.nbytes());
}

TEST(EncodedGraph, IsNotTakenByAnotherEncoderOrInAnotherPrecision) {
  EncoderConfig config;
  const Encoder encoder(config, kLayoutSchema);
  const UnitInput unit = unit_of({kept(encoder, 5)});
  EXPECT_EQ(encoder.prepare(unit, at::kDouble).node_features.scalar_type(), at::kDouble);
  config.node_transform = FeatureTransform::raw;
  const Encoder raw(config, kLayoutSchema);
  EXPECT_TRUE(at::equal(raw.prepare(unit, at::kFloat).node_features,
                        raw.prepare(unit_of({make_graph(5)}), at::kFloat).node_features));
  config.node_columns = {1, 2};
  const Encoder fewer(config, kLayoutSchema);
  EXPECT_EQ(fewer.prepare(unit, at::kFloat).node_features.size(1), 2);
  config.code_width = 4;
  const Encoder codes(config, kLayoutSchema);
  EXPECT_EQ(codes.prepare(unit, at::kFloat).node_codes->index.size(), 30u);
}

TEST(EncodedGraph, RefusesWhatTheCodeEmbeddingDoesNotKnow) {
  EncoderConfig config;
  config.code_width = 4;
  const Encoder encoder(config, kLayoutSchema);
  std::vector<float> features(kNodeFeatures, 0.0f);
  features[136] = 9;
  const std::vector<std::uint8_t> opcodes{1};
  const GraphInput graph(GraphArrays::of(features, opcodes, kLayoutSchema, FeatureForm::raw),
                         kLayoutSchema);
  try {
    encoder.encode(graph, at::kFloat);
    FAIL() << "took 9";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no row in the code embedding"));
  }
}

}  // namespace
}  // namespace tpudist
