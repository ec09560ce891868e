#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/safetensors/safetensors_file.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/network.hpp"
#include "models/plans/plan.hpp"
#include "results/checkpoints/weights_file.hpp"
#include "tests/models/layers/golden_case.hpp"
#include "tests/models/network_case.hpp"
#include "tests/support/temp_dir.hpp"

// The 2nd place's networks of PyTorch Geometric (tests/golden/layers), their weights read from a
// file of its names: scores and gradients are those of PyTorch.

namespace tpudist::test {
namespace {

std::int64_t rows_of(GoldenCase& golden, const std::string& name) {
  return golden.file().tensor("weights." + name).shape[0];
}

// A network of the widths that the weights have.
NetworkConfig config_of(GoldenCase& golden, bool residual, double scale) {
  NetworkConfig config;
  config.encoder.opcode_width = golden.file().tensor("weights.encoder.opcode.weight").shape[1];
  config.encoder.node_width = rows_of(golden, "encoder.node.weight");
  config.encoder.width = rows_of(golden, "encoder.join.weight");
  config.output_scale = scale;
  const auto weights = golden.tensors("weights");
  std::vector<SageConfig> layers;
  for (int i = 0; weights.contains("blocks." + std::to_string(i) + ".sage.lin_l.weight"); ++i) {
    SageConfig layer;
    layer.width = rows_of(golden, "blocks." + std::to_string(i) + ".sage.lin_l.weight");
    layer.mix.aggregation = Aggregation::mean;
    layer.mix.edge_kinds = {EdgeKind::consumer_to_producer};
    layer.residual = residual;
    layers.push_back(layer);
  }
  config.set_sage(layers);
  return config;
}

test::SlateCase slate_of(GoldenCase& golden) {
  const GoldenTensor features = golden.tensor("graph.node_features"),
                     configs = golden.tensor("configs");
  test::SlateCase slate;
  slate.nodes = features.shape[0];
  slate.configs = configs.shape[0];
  slate.features.assign(features.values.begin(), features.values.end());
  for (const std::int64_t node : golden.integers("graph.edges"))
    slate.edges.push_back(static_cast<std::int32_t>(node));
  for (const std::int64_t opcode : golden.integers("graph.opcodes"))
    slate.opcodes.push_back(static_cast<std::uint8_t>(opcode));
  if (configs.shape.size() == 3) {
    for (const std::int64_t node : golden.integers("graph.config_nodes"))
      slate.config_nodes.push_back(static_cast<std::int32_t>(node));
  }
  slate.state_values.assign(configs.values.begin(), configs.values.end());
  slate.state_rows = static_cast<std::int64_t>(configs.values.size()) / configs.shape.back();
  for (std::int64_t row = 0; row < slate.state_rows; ++row)
    slate.states.push_back(static_cast<std::int32_t>(row));
  return slate;
}

// Writes tensors as PyTorch would save them alone.
void write(const std::filesystem::path& path, const std::map<std::string, GoldenTensor>& tensors) {
  SafetensorsWriter writer;
  for (const auto& [name, tensor] : tensors)
    writer.add(name, TensorType::f64, tensor.shape, std::as_bytes(std::span(tensor.values)));
  writer.write(path);
}

// Differences from the mean: a ranking does not see a shift.
std::vector<double> centred(std::vector<double> values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (double& value : values) value -= mean;
  return values;
}

double largest(const auto& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

void expect_golden(const std::string& name, const FeatureSchema& schema, bool residual,
                   double scale) {
  SCOPED_TRACE(name);
  GoldenCase golden(test::source_folder() / "tests/models/layers/networks" /
                    (name + ".safetensors"));
  ThreadPool pool(1, use_one_thread_per_worker);
  const Network network(config_of(golden, residual, scale), schema, -1, pool);
  const auto length = static_cast<std::size_t>(network.parameters().length());
  const test::TempDir folder;
  AlignedFloats flat(length), expected(length);
  write(folder / "weights.safetensors", golden.tensors("weights"));
  read_weights(folder / "weights.safetensors", network.parameters(), flat);
  // Gradients have the names and layouts of their parameters.
  write(folder / "gradients.safetensors", golden.tensors("gradients"));
  read_weights(folder / "gradients.safetensors", network.parameters(), expected);

  const test::SlateCase slate = slate_of(golden);
  const UnitInput unit = test::make_unit(network, std::span(&slate, 1));
  const std::vector<double> coefficients = golden.tensor("coefficients").values;
  std::vector<double> scores;
  std::vector<float> gradient(length);
  const std::span<float> span = gradient;
  network.gradient(
      flat, 0, 1, unit,
      [&](const UnitScores& unit_scores) {
        for (const double delta : unit_scores.delta) scores.push_back(delta);
        return ScoreGradient{coefficients, {}};
      },
      std::span(&span, 1));
  const std::vector<double> wanted = centred(golden.tensor("output").values);
  scores = centred(scores);
  ASSERT_EQ(scores.size(), wanted.size());
  for (std::size_t k = 0; k < wanted.size(); ++k)
    EXPECT_NEAR(scores[k], wanted[k], 1e-4 * largest(wanted));
  // Of a bias whose terms cancel, as the last one's do, rounding remains.
  const double floor = 1e-6 * largest(std::span<const float>(expected));
  for (const ParameterEntry& entry : network.parameters().entries()) {
    const auto own = std::span<const float>(expected).subspan(entry.offset, entry.size());
    for (std::int64_t i = 0; i < entry.size(); ++i)
      ASSERT_NEAR(gradient[entry.offset + i], own[i], 1e-4 * largest(own) + floor)
          << entry.name << i;
  }
}

TEST(GoldenWeights, GiveTheScoresAndGradientsOfPyTorch) {
  expect_golden("latenciaga_xla_list_mle", kLayoutSchema, false, 1e-3);
  expect_golden("latenciaga_nlp_list_mle", kLayoutSchema, true, 1e-3);
  expect_golden("latenciaga_tile_list_mle", kTileSchema, false, 1);
}

}  // namespace
}  // namespace tpudist::test
