#include "tests/models/layers/golden_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

// What the golden cases promise to those who read them: tests/golden/layers/README.md.

namespace tpudist {
namespace {

using test::golden_files;
using test::GoldenCase;
using test::GoldenTensor;

double largest(const GoldenTensor& tensor) {
  double most = 0;
  for (const double value : tensor.values) most = std::max(most, std::abs(value));
  return most;
}

void expect_complete(GoldenCase& golden) {
  const auto weights = golden.tensors("weights"), gradients = golden.tensors("gradients");
  double scale = 0;  // of all: a bias in front of a norm has no gradient of its own
  for (const auto& [name, gradient] : gradients) scale = std::max(scale, largest(gradient));
  for (const auto& [name, weight] : weights) {
    ASSERT_TRUE(gradients.contains(name)) << name;
    EXPECT_EQ(gradients.at(name).shape, weight.shape) << name;
    for (const double value : weight.values) ASSERT_EQ(value, static_cast<float>(value)) << name;
    // What float32 makes of the same formulas.
    const double error = golden.tensor("float32_error.gradients." + name).values.at(0);
    EXPECT_LE(error, 1e-4 * scale) << name;
  }
  const GoldenTensor output = golden.tensor("output"), coefficients = golden.tensor("coefficients");
  EXPECT_EQ(output.shape, coefficients.shape);
  for (const double value : output.values) ASSERT_TRUE(std::isfinite(value));
  EXPECT_GT(largest(output), 0);
  EXPECT_LE(golden.tensor("float32_error.output").values.at(0), 1e-4 * largest(output));
}

TEST(GoldenCase, LayersAreComplete) {
  const auto files = golden_files("cases");
  EXPECT_EQ(files.size(), 74u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.string());
    GoldenCase golden(path);
    EXPECT_EQ(golden.name() + ".safetensors", path.filename().string());
    EXPECT_FALSE(golden.layer().empty());
    expect_complete(golden);
  }
}

// x[k, n] = nodes[n] + states[codes[k, i]] where node n is config_nodes[i].
TEST(GoldenCase, StatesComeFromNodesAndConfigurations) {
  for (const auto& path : golden_files("cases")) {
    SCOPED_TRACE(path.string());
    GoldenCase golden(path);
    const GoldenTensor nodes = golden.tensor("inputs.nodes"), x = golden.tensor("inputs.x"),
                       states = golden.tensor("inputs.states");
    const auto codes = golden.integers("inputs.codes"),
               config_nodes = golden.integers("graph.config_nodes");
    const std::size_t count = nodes.shape[0], width = nodes.shape[1], configs = x.shape[0];
    std::vector<double> expected;
    for (std::size_t k = 0; k < configs; ++k)
      expected.insert(expected.end(), nodes.values.begin(), nodes.values.end());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::size_t k = i / config_nodes.size(), node = config_nodes[i % config_nodes.size()];
      for (std::size_t c = 0; c < width; ++c)
        expected[(k * count + node) * width + c] += states.values[codes[i] * width + c];
    }
    EXPECT_EQ(x.values, expected);
  }
}

// A row of x is shared by all that have it: its gradients add up to those of nodes and states.
TEST(GoldenCase, GradientsOfStatesAddUpToThoseOfTheirInputs) {
  for (const auto& path : golden_files("cases")) {
    SCOPED_TRACE(path.string());
    GoldenCase golden(path);
    const GoldenTensor x = golden.tensor("gradients.x"), nodes = golden.tensor("gradients.nodes");
    const double scale = largest(x);
    for (std::size_t i = 0; i < nodes.values.size(); ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < static_cast<std::size_t>(x.shape[0]); ++k)
        sum += x.values[k * nodes.values.size() + i];
      ASSERT_NEAR(nodes.values[i], sum, 1e-12 * scale);
    }
  }
}

TEST(GoldenCase, NetworksAreComplete) {
  const auto files = golden_files("networks");
  EXPECT_EQ(files.size(), 25u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.string());
    GoldenCase golden(path);
    EXPECT_EQ(golden.name() + ".safetensors", path.filename().string());
    expect_complete(golden);
    EXPECT_EQ(golden.tensor("graph.node_features").shape, (std::vector<std::int64_t>{12, 140}));
    EXPECT_EQ(golden.tensor("output").shape, (std::vector<std::int64_t>{3}));
  }
}

}  // namespace
}  // namespace tpudist
