// What a network's graphs have behind node_feat, against the definitions.

#include "models/inputs/encoder_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;

// Random edges, some of them parallel, some from a node to itself; the last node has none.
std::vector<std::int32_t> random_edges(int nodes, int edges, std::uint64_t seed) {
  CounterRng random(seed);
  std::vector<std::int32_t> list;
  for (int e = 0; e < 2 * edges; ++e)
    list.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(nodes - 1))));
  return list;
}

// Diagonals of the powers of D^-1 (A + A^T).
std::vector<float> by_powers(int nodes, const std::vector<std::int32_t>& edges, int steps,
                             bool loops) {
  const auto n = static_cast<std::size_t>(nodes);
  std::vector<double> step(n * n), power, next(n * n);
  for (std::size_t e = 0; e < edges.size(); e += 2) {
    step[edges[e] * n + edges[e + 1]] += 1;
    step[edges[e + 1] * n + edges[e]] += 1;
  }
  for (std::size_t i = 0; i < n; ++i) {
    step[i * n + i] += loops;
    double degree = 0;
    for (std::size_t j = 0; j < n; ++j) degree += step[i * n + j];
    for (std::size_t j = 0; j < n && degree > 0; ++j) step[i * n + j] /= degree;
  }
  power = step;
  std::vector<float> all(n * static_cast<std::size_t>(steps));
  for (int k = 0; k < steps; ++k) {
    for (std::size_t i = 0; i < n; ++i)
      all[i * static_cast<std::size_t>(steps) + static_cast<std::size_t>(k)] =
          static_cast<float>(power[i * n + i]);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        next[i * n + j] = 0;
        for (std::size_t m = 0; m < n; ++m) next[i * n + j] += power[i * n + m] * step[m * n + j];
      }
    }
    power = next;
  }
  return all;
}

TEST(GraphColumns, WalksReturnAsThePowersSay) {
  for (const int steps : {1, 2, 7, 12}) {
    for (const bool loops : {false, true}) {
      const auto edges = random_edges(30, 45, static_cast<std::uint64_t>(steps));
      const std::vector<float> found = return_probabilities(GraphEdges(30, edges), steps, loops),
                               expected = by_powers(30, edges, steps, loops);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-6) << steps << " " << loops << " " << i;
    }
  }
}

TEST(GraphColumns, ANodeWithoutEdgesIsNeverAgainWhereItWas) {
  const GraphEdges edges(1, std::vector<std::int32_t>{});
  EXPECT_THAT(return_probabilities(edges, 3, false), ElementsAre(0, 0, 0));
  EXPECT_THAT(return_probabilities(edges, 3, true), ElementsAre(1, 1, 1));
}

TEST(GraphColumns, WalksThatTakeTooLongAreRefused) {
  const GraphEdges edges(30, random_edges(30, 45, 1));
  EXPECT_NO_THROW(return_probabilities(edges, 12, false, 1'000'000));
  EXPECT_THROW(return_probabilities(edges, 12, false, 1000), DataError);
}

// Nodes 0 and 1 are operands of 2, 0 alone is one of 3, and 1 and 2 of 4.
TEST(GraphColumns, LargestDimensionsOfATensor) {
  FeatureSchema schema = kLayoutSchema;
  schema.node_features = 3;
  schema.dimension_columns = {0, 3};
  const std::vector<float> features{4, 2, 0, 8, 8, 1, 1, 8, 8, 0, 0, 0, 2, 1, 2};
  const GraphEdges edges(5, std::vector<std::int32_t>{2, 1, 2, 0, 3, 0, 4, 1, 4, 1});
  const auto of = [&](LayoutTensor tensor) {
    return largest_dimensions(features, edges, tensor, schema);
  };
  EXPECT_THAT(of(LayoutTensor::output), ElementsAre(1, 3, 6, 0, 5));
  // The operands of 2 differ.
  EXPECT_THAT(of(LayoutTensor::input), ElementsAre(0, 0, 0, 1, 3));
  EXPECT_THAT(of(LayoutTensor::kernel), ElementsAre(0, 0, 0, 0, 3));

  GraphColumns columns;
  columns.largest = true;
  columns.walk_steps = 2;
  const std::vector<float> rows =
      columns.of(5, features, std::vector<std::int32_t>{2, 1, 2, 0, 3, 0, 4, 1, 4, 1}, schema);
  ASSERT_EQ(rows.size(), 15u);
  EXPECT_EQ(rows[2], 1);
  EXPECT_EQ(rows[5], 3);
  EXPECT_EQ(rows[9], 0);  // from 3 over 0, which has two edges, and back
  EXPECT_EQ(rows[10], 0.5f);
}

}  // namespace
}  // namespace tpudist
