#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "data/schema/tpugraphs.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/models/network_case.hpp"

// Scores and gradients of PyTorch Geometric's SAGEConv: tests/golden/sage_network.py.

namespace tpudist {
namespace {

// Sum of the gradient of (1, -2, 0.5) . scores times a pattern, for each parameter.
struct Golden {
  std::array<Aggregation, 3> aggregations;
  std::array<double, 3> scores;
  std::vector<std::pair<const char*, double>> gradients;
};

const Golden kMeans = {{Aggregation::mean, Aggregation::mean, Aggregation::mean},
                       {-0.000185656008481, -0.00030338600557, -0.000390591407191},
                       {
                           {"encoder.opcode.weight", -2.56574413409e-06},
                           {"encoder.node.weight", -0.00064814539886},
                           {"encoder.node.bias", 6.86252818123e-05},
                           {"encoder.join.weight", 2.1966446792e-05},
                           {"encoder.join.bias", -2.28048407783e-05},
                           {"blocks.0.sage.neighbours.weight", -0.000513393443021},
                           {"blocks.0.sage.self.weight", -0.00040544741424},
                           {"blocks.0.sage.neighbours.bias", 0.000138547887405},
                           {"blocks.1.sage.neighbours.weight", 1.77655560893e-05},
                           {"blocks.1.sage.self.weight", -0.000127934219025},
                           {"blocks.1.sage.neighbours.bias", 0.000151100158691},
                           {"blocks.2.sage.neighbours.weight", -0.000340509911569},
                           {"blocks.2.sage.self.weight", -0.000740985254978},
                           {"blocks.2.sage.neighbours.bias", -7.9833984375e-05},
                           {"head.weight", -8.10537292333e-05},
                           {"head.bias", -0.0001953125},
                       }};

const Golden kMaxima = {{Aggregation::max, Aggregation::sum, Aggregation::max},
                        {-0.000205967138726, -0.000359026818805, -0.000419938870736},
                        {
                            {"encoder.opcode.weight", -2.29558106657e-05},
                            {"encoder.node.weight", -0.000790768734884},
                            {"encoder.node.bias", 7.07159325611e-05},
                            {"encoder.join.weight", 0.000105877626075},
                            {"encoder.join.bias", 1.88444284722e-05},
                            {"blocks.0.sage.neighbours.weight", -0.000823392328746},
                            {"blocks.0.sage.self.weight", -0.000536514803105},
                            {"blocks.0.sage.neighbours.bias", 0.000177637636662},
                            {"blocks.1.sage.neighbours.weight", -0.00015900497687},
                            {"blocks.1.sage.self.weight", -0.000240362516509},
                            {"blocks.1.sage.neighbours.bias", 0.000128103256226},
                            {"blocks.2.sage.neighbours.weight", -0.000260066156799},
                            {"blocks.2.sage.self.weight", -0.000790063600222},
                            {"blocks.2.sage.neighbours.bias", -7.7392578125e-05},
                            {"head.weight", 0.000129764345751},
                            {"head.bias", -0.0001953125},
                        }};

float pattern(std::int64_t i, int salt) {
  return static_cast<float>((i * 7 + salt * 5) % 31 - 15) / 64;
}

test::SlateCase golden_slate() {
  test::SlateCase slate{5,  3,  6, {1, 0, 2, 0, 2, 1, 2, 1, 3, 2, 4, 0}, {1, 3}, {0, 1, 2, 3, 4, 5},
                        {}, {}, {}};
  for (int v = 0; v < 5; ++v) {
    slate.opcodes.push_back(static_cast<std::uint8_t>(v * 37 % kOpcodes));
    for (int j = 0; j < kNodeFeatures; ++j)
      slate.features.push_back(((v * 13 + j * 5) % 17 - 4) * 10.0f);
  }
  for (int k = 0; k < 3; ++k) {
    for (int j = 0; j < 2; ++j) {
      for (int c = 0; c < kLayoutConfigFeatures; ++c)
        slate.state_values.push_back((k * 5 + j * 3 + c) % 7 - 1.0f);
    }
  }
  return slate;
}

void expect_golden(const Golden& golden) {
  NetworkConfig config;
  config.encoder = {12, 20, 16};
  std::vector<SageConfig> layers;
  for (int i = 0; i < 3; ++i) {
    SageConfig layer;
    layer.width = i < 2 ? 16 : 8;
    layer.mix.aggregation = golden.aggregations[i];
    layer.mix.edge_kinds = {EdgeKind::consumer_to_producer};
    layer.residual = true;
    layers.push_back(layer);
  }
  config.set_sage(layers);
  ThreadPool pool(1, use_one_thread_per_worker);
  const Network network(config, kLayoutSchema, -1, pool);
  AlignedFloats flat(network.parameters().length(), 0.0f);
  int salt = 0;
  for (const ParameterEntry& entry : network.parameters().entries()) {
    ++salt;
    for (std::int64_t i = 0; i < entry.size(); ++i) flat[entry.offset + i] = pattern(i, salt);
  }
  const test::SlateCase slate = golden_slate();
  const UnitInput unit = test::make_unit(network, std::span(&slate, 1));
  std::vector<float> gradient(flat.size());
  const std::span<float> span = gradient;
  network.gradient(
      flat, 0, 1, unit,
      [&](const UnitScores& scores) {
        for (int k = 0; k < 3; ++k)
          EXPECT_NEAR(scores.common[0] + scores.delta[k], golden.scores[k], 2e-9);
        return ScoreGradient{{1, -2, 0.5}, {}};
      },
      std::span(&span, 1));
  for (const auto& [name, expected] : golden.gradients) {
    const ParameterEntry& entry = network.parameters().find(name);
    double sum = 0;
    for (std::int64_t i = 0; i < entry.size(); ++i)
      sum += gradient[entry.offset + i] * static_cast<double>(pattern(i, 4));
    EXPECT_NEAR(sum, expected, 1e-8) << name;
  }
}

TEST(NetworkGolden, EqualsPyTorchGeometric) {
  expect_golden(kMeans);
  expect_golden(kMaxima);
}

}  // namespace
}  // namespace tpudist
