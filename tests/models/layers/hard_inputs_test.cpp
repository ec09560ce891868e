// Inputs at the edge of what layers can take: one node, one configuration, no edges, constant
// features, many parallel edges, and numbers that are none.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "models/kernels/cpu_process.hpp"
#include "tests/models/layers/property_network.hpp"
#include "tests/models/score_vectors.hpp"

namespace tpudist {
namespace {

using namespace test;

constexpr std::uint64_t kKey = 0x55aa55ull;

// Scores and gradients of all parameters on one plan.
struct Values {
  std::vector<double> scores, gradients;
  bool are_finite() const {
    const auto finite = [](double x) { return std::isfinite(x); };
    return std::ranges::all_of(scores, finite) && std::ranges::all_of(gradients, finite);
  }
};

Values values_of(const PropertyNetwork& network, const UnitInput& input,
                 std::span<const float> flat) {
  const DoubleCall call(network, input, flat, {kKey});
  Values result{values(call.scores()), {}};
  const auto gradients = call.gradients();
  for (std::size_t i = 0; i < call.parameters(); ++i) {
    const std::vector<double> own = values(gradients[i]);
    result.gradients.insert(result.gradients.end(), own.begin(), own.end());
  }
  return result;
}

bool float_is_finite(const PropertyNetwork& network, const UnitInput& input,
                     std::span<const float> flat) {
  std::vector<float> gradient(network.network().parameters().length());
  const std::vector<std::span<float>> spans{gradient};
  const std::vector<std::uint64_t> keys{kKey};
  bool finite = true;
  const auto loss = [&](const UnitScores& scores) {
    for (const double score : scores.delta) finite = finite && std::isfinite(score);
    return ScoreGradient{std::vector<double>(scores.delta.size(), 0.5), {}};
  };
  network.network().gradient(flat, 0, 1, input, loss, spans, true, keys);
  for (const float value : gradient) finite = finite && std::isfinite(value);
  return finite;
}

class HardInputs : public EveryLayer {
 protected:
  // Changes a unit and expects that dense and refined plans give the same finite numbers in double,
  // and finite ones in float32.
  void expect_fine(const std::function<void(RepeatedUnit&)>& change, Configurable configurable) {
    use_one_thread_per_worker();
    const bool tile = configurable == Configurable::tile;
    for (int variant = 0; variant < 4; ++variant) {
      SCOPED_TRACE(variant);
      CounterRng random(31, variant);
      RepeatedUnit unit = small_unit(random, 1, 1, configurable);
      change(unit);
      const PropertyNetwork network(GetParam().yaml, variant, tile, pool_);
      const AlignedFloats flat = network.parameters(1, kKey);
      const UnitInput dense = dense_unit(network.network(), unit),
                      refined = compact_unit(network.network(), unit);
      const Values expected = values_of(network, dense, flat),
                   actual = values_of(network, refined, flat);
      EXPECT_TRUE(expected.are_finite());
      EXPECT_LE(distance(actual.scores, expected.scores), 1e-9 * (norm(expected.scores) + 1e-3));
      EXPECT_LE(distance(actual.gradients, expected.gradients),
                1e-9 * (norm(expected.gradients) + 1e-3));
      EXPECT_TRUE(float_is_finite(network, dense, flat));
      EXPECT_TRUE(float_is_finite(network, refined, flat));
    }
  }

  ThreadPool pool_{1};
};

// One node with its states; what stays is a graph without edges.
void keep_one_node(RepeatedUnit& unit) {
  RepeatedGraph& graph = unit.graphs[0];
  const std::int64_t before = graph.states_per_config();
  graph.nodes = 1;
  graph.edges.clear();
  graph.features.resize(kNodeFeatures);
  graph.opcodes.resize(1);
  if (graph.config_nodes.empty()) return;
  graph.config_nodes = {0};
  std::vector<std::int32_t> states;
  for (std::size_t i = 0; i < unit.slates[0].states.size(); i += before)
    states.push_back(unit.slates[0].states[i]);
  unit.slates[0].states = states;
}

void keep_one_configuration(RepeatedUnit& unit) {
  unit.slates[0].states.resize(unit.graphs[0].states_per_config());
  unit.slates[0].configs = 1;
}

TEST_P(HardInputs, OneNode) {
  expect_fine(keep_one_node, Configurable::few);
  expect_fine(keep_one_node, Configurable::tile);
}

TEST_P(HardInputs, OneConfiguration) {
  expect_fine(keep_one_configuration, Configurable::few);
  expect_fine(keep_one_configuration, Configurable::tile);
}

TEST_P(HardInputs, OneNodeWithOneConfiguration) {
  expect_fine(
      [](RepeatedUnit& unit) {
        keep_one_configuration(unit);
        keep_one_node(unit);
      },
      Configurable::few);
}

TEST_P(HardInputs, NoEdges) {
  expect_fine([](RepeatedUnit& unit) { unit.graphs[0].edges.clear(); }, Configurable::few);
}

// All nodes are one class and all configurations are equal: channels are constant, and nothing is
// needed to tell configurations apart.
TEST_P(HardInputs, EverythingEqual) {
  expect_fine(
      [](RepeatedUnit& unit) {
        RepeatedGraph& graph = unit.graphs[0];
        std::ranges::fill(graph.features, 0.0f);
        std::ranges::fill(graph.opcodes, std::uint8_t{3});
        std::ranges::fill(graph.states, 1.0f);
      },
      Configurable::all);
}

// A thousand parallel edges, and features as large as sizes in bytes are.
TEST_P(HardInputs, LargeCountsAndFeatures) {
  expect_fine(
      [](RepeatedUnit& unit) {
        RepeatedGraph& graph = unit.graphs[0];
        for (int i = 0; i < 1000; ++i) {
          graph.edges.push_back(1);
          graph.edges.push_back(0);
        }
        for (float& feature : graph.features) feature *= 1e9f;
      },
      Configurable::few);
}

TEST_P(HardInputs, LargeStates) {
  expect_fine(
      [](RepeatedUnit& unit) {
        for (float& state : unit.graphs[0].states) state *= 1000;
      },
      Configurable::few);
}

// A NaN shows in the scores, wherever it stands, and nothing else goes wrong.
TEST_P(HardInputs, NumbersThatAreNone) {
  use_one_thread_per_worker();
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (int variant = 0; variant < 4; ++variant) {
    for (const bool in_states : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "variant " << variant << (in_states ? ", states" : ""));
      CounterRng random(37, variant);
      RepeatedUnit unit = small_unit(random, 1, 1, Configurable::all);
      // Of the first node, in a column that the encoder takes; or in all states.
      if (in_states) {
        std::ranges::fill(unit.graphs[0].states, none);
      } else {
        unit.graphs[0].features[2] = none;
      }
      const PropertyNetwork network(GetParam().yaml, variant, false, pool_);
      const AlignedFloats flat = network.parameters(1, kKey);
      const UnitInput input = dense_unit(network.network(), unit);
      for (const double score : values_of(network, input, flat).scores)
        EXPECT_TRUE(std::isnan(score)) << score;
      EXPECT_FALSE(float_is_finite(network, input, flat));
    }
  }
}

// A weight that is NaN, as after a step too large: the trainer leaves the member out by its scores.
TEST_P(HardInputs, WeightsThatAreNone) {
  use_one_thread_per_worker();
  CounterRng random(41);
  const RepeatedUnit unit = small_unit(random, 1, 1, Configurable::few);
  const PropertyNetwork network(GetParam().yaml, 0, false, pool_);
  AlignedFloats flat = network.parameters(1, kKey);
  const ParameterEntry& bias = network.network().parameters().find("encoder.join.bias");
  flat[bias.offset] = std::numeric_limits<float>::quiet_NaN();
  const UnitInput input = compact_unit(network.network(), unit);
  for (const double score : network.network().scores(flat, 0, 1, input).delta)
    EXPECT_TRUE(std::isnan(score)) << score;
}

// Training may carry a temperature below zero and close to it.
TEST_P(HardInputs, TemperaturesBelowZero) {
  use_one_thread_per_worker();
  CounterRng random(43);
  const RepeatedUnit unit = small_unit(random, 1, 1, Configurable::all);
  const PropertyNetwork network(GetParam().yaml, 0, false, pool_);
  AlignedFloats flat = network.parameters(1, kKey);
  bool there = false;
  for (const ParameterEntry& entry : network.network().parameters().entries()) {
    if (entry.name.find("temperature") == std::string::npos) continue;
    flat[entry.offset] = -1e-3f;
    there = true;
  }
  EXPECT_EQ(there, network.network().config().mixes_configs());
  EXPECT_TRUE(float_is_finite(network, dense_unit(network.network(), unit), flat));
  EXPECT_TRUE(float_is_finite(network, compact_unit(network.network(), unit), flat));
}

INSTANTIATE_TEST_SUITE_P(Spellings, HardInputs, ::testing::ValuesIn(layer_spellings()), name_of);

}  // namespace
}  // namespace tpudist
