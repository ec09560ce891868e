#include "models/network/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/device/device_backend.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/executor.hpp"
#include "models/plans/build_plan.hpp"
#include "models/plans/row_keys.hpp"
#include "tests/models/naive_network.hpp"
#include "tests/models/plans/check_plan.hpp"

namespace tpudist {
namespace {

using test::call;
using test::CallResult;
using test::NaiveNetwork;
using test::Shift;
using test::SlateCase;

SageConfig sage(std::int64_t width,
                std::vector<EdgeKind> directions = {EdgeKind::consumer_to_producer}) {
  SageConfig layer;
  layer.width = width;
  layer.mix.edge_kinds = std::move(directions);
  return layer;
}

// A network of one kind on slates of one kind.
struct Case {
  const char* name;
  NetworkConfig config;
  std::vector<SlateCase> slates;
  FeatureSchema schema = kLayoutSchema;
};

std::vector<SlateCase> layout_slates(std::vector<std::int64_t> nodes,
                                     std::vector<std::int64_t> configs) {
  std::vector<SlateCase> slates;
  for (std::size_t s = 0; s < nodes.size(); ++s) {
    slates.push_back(test::random_slate(11 + s, nodes[s], configs[s],
                                        std::max<std::int64_t>(nodes[s] / 4, 1),
                                        kLayoutConfigFeatures));
  }
  return slates;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  NetworkConfig small;
  small.encoder = {12, 20, 32};
  std::vector<SageConfig> plain{sage(32), sage(32), sage(48)};
  plain[1].residual = true;
  small.set_sage(plain);
  all.push_back({"aligned widths, residual, several row blocks", small, layout_slates({150}, {5})});
  all.push_back({"slates of equal K", small, layout_slates({9, 14, 6}, {4, 4, 4})});
  all.push_back({"slates of unequal K, one of a single configuration", small,
                 layout_slates({9, 14, 6}, {4, 1, 7})});

  NetworkConfig odd;
  odd.encoder = {3, 5, 7};
  const auto forth = EdgeKind::consumer_to_producer, back = EdgeKind::producer_to_consumer;
  std::vector<SageConfig> layers{sage(7, {forth, back}), sage(5, {back}), sage(5), sage(9, {})};
  layers[0].residual = layers[2].residual = true;
  layers[1].mix.aggregation = Aggregation::sum;
  layers[1].activation = Activation::none;
  odd.set_sage(layers);
  odd.pools = {Aggregation::mean};
  odd.output_scale = 2.5;
  all.push_back({"odd widths, both directions, sums, no edges, mean readout", odd,
                 layout_slates({13, 8}, {3, 3})});
  for (SageConfig& layer : layers) layer.mix.aggregation = Aggregation::max;
  odd.set_sage(layers);
  all.push_back({"odd widths, both directions, maxima", odd, layout_slates({13, 8}, {3, 5})});
  plain[0].mix.aggregation = plain[2].mix.aggregation = Aggregation::max;
  small.set_sage(plain);
  all.push_back({"maxima and means, several row blocks", small, layout_slates({150}, {5})});

  std::vector<SlateCase> tile = {test::random_slate(5, 17, 6, 0, kTileConfigFeatures),
                                 test::random_slate(6, 3, 4, 0, kTileConfigFeatures)};
  small.output_scale = 1;
  all.push_back({"tile", small, tile, kTileSchema});
  FeatureSchema own = {.node_features = 21, .config_features = 3, .opcodes = 5};
  odd.encoder.node_width = 6;
  odd.pools = {Aggregation::sum};
  for (const int opcodes : {5, 0}) {
    own.opcodes = opcodes;
    odd.encoder.opcode_width = opcodes ? 3 : 0;
    all.push_back({opcodes ? "other widths" : "other widths, no opcodes",
                   odd,
                   {test::random_slate(7, 13, 3, 3, 3, 21, opcodes),
                    test::random_slate(8, 8, 4, 2, 3, 21, opcodes)},
                   own});
  }
  all.push_back(
      {"latenciaga_xla", NetworkConfig::preset("latenciaga_xla"), layout_slates({30}, {4})});
  return all;
}

void expect_close(std::span<const float> actual, std::span<const double> expected, double tolerance,
                  const ParameterTable& table) {
  for (const ParameterEntry& entry : table.entries()) {
    double largest = 0, error = 0;
    for (std::int64_t i = entry.offset; i < entry.offset + entry.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      error = std::max(error, std::abs(actual[i] - expected[i]));
    }
    EXPECT_LE(error, tolerance * largest + 1e-12) << entry.name << " largest " << largest;
    EXPECT_GT(largest, 0) << entry.name << ": the test sees nothing of it";
  }
}

void expect_naive(const Network& network, std::span<const float> flat, int members,
                  std::span<const SlateCase> slates, const CallResult& result,
                  std::span<const double> weights) {
  const std::int64_t length = network.parameters().length();
  for (int m = 0; m < members; ++m) {
    const NaiveNetwork naive(network, flat.subspan(m * length, length));
    const at::Tensor expected = naive.scores(slates);
    const std::int64_t configs = result.scores.configs,
                       shared = result.scores.common.size() / members;
    ASSERT_EQ(expected.size(0), configs);
    std::int64_t k = 0;
    for (std::size_t s = 0; s < slates.size(); ++s) {
      for (std::int64_t i = 0; i < slates[s].configs; ++i, ++k) {
        const double score =
            result.scores.delta[m * configs + k] + result.scores.common[m * shared + s];
        EXPECT_NEAR(score, expected[k].item<double>(),
                    2e-5 * std::abs(expected[k].item<double>()) + 1e-7);
      }
    }
    expect_close(result.gradients[m], naive.gradient(slates, weights), 2e-4, network.parameters());
  }
}

TEST(Network, EqualsPlainAutogradOnDensePlans) {
  ThreadPool pool(2, use_one_thread_per_worker);
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    const Network network(test.config, test.schema, -1, pool);
    const AlignedFloats flat = test::random_parameters(network, 3, 42);
    const UnitInput unit = test::make_unit(network, test.slates);
    check_plan(*unit.plan);
    expect_naive(network, flat, 3, test.slates, call(network, flat, 0, 3, unit),
                 test::score_weights(*unit.plan, Shift::counts));
  }
}

// A unit on a refined plan: rectangular layers, rows that are shared, and rows apart that all
// configurations have in common.
UnitInput refined_unit(const Network& network, std::span<const SlateCase> cases) {
  std::vector<RefinedGraph> graphs;
  std::vector<std::vector<std::int32_t>> classes;
  graphs.reserve(cases.size());
  std::vector<RefinedSlate> slates;
  const auto numbers = [](std::int64_t n) {
    std::vector<std::int32_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    return all;
  };
  for (const SlateCase& slate : cases) {
    graphs.emplace_back(slate.nodes, slate.edges, slate.config_nodes, numbers(slate.nodes),
                        network.plan_shape());
    classes.push_back(numbers(slate.state_rows));
  }
  for (std::size_t s = 0; s < cases.size(); ++s) {
    slates.push_back(
        {&graphs[s], cases[s].configs, cases[s].states, classes[s], cases[s].state_rows});
  }
  const auto plan = std::make_shared<Plan>(build_refined_plan(slates));
  check_plan(*plan);
  return test::make_unit(network, cases, plan);
}

TEST(Network, EqualsPlainAutogradOnRefinedPlans) {
  ThreadPool pool(2, use_one_thread_per_worker);
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    const Network network(test.config, test.schema, -1, pool);
    const UnitInput unit = refined_unit(network, test.slates);
    const AlignedFloats flat = test::random_parameters(network, 2, 1);
    expect_naive(network, flat, 2, test.slates, call(network, flat, 0, 2, unit),
                 test::score_weights(*unit.plan, Shift::counts));
  }
}

double norm(std::span<const float> x) {
  double square = 0;
  for (const float v : x) square += static_cast<double>(v) * v;
  return std::sqrt(square);
}

// Of b from a, as a share of a's norm.
double distance(std::vector<float> a, std::span<const float> b) {
  const double size = norm(a);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return norm(a) / size;
}

// common + delta of every configuration of a unit.
std::vector<float> all_scores(const UnitScores& scores, const Plan& plan, int member) {
  std::vector<float> sums;
  const std::size_t slates = scores.common.size() / scores.members;
  for (std::int64_t k = 0; k < scores.configs; ++k) {
    sums.push_back(
        static_cast<float>(scores.delta[member * scores.configs + k] +
                           scores.common[member * slates + plan.readout.slate_of_config[k]]));
  }
  return sums;
}

void expect_near_scores(const UnitScores& actual, const UnitScores& expected) {
  ASSERT_EQ(actual.delta.size(), expected.delta.size());
  for (std::size_t i = 0; i < expected.delta.size(); ++i) {
    EXPECT_NEAR(actual.delta[i], expected.delta[i], 1e-5 * std::abs(expected.delta[i]) + 1e-7);
  }
}

// The scores of a composed network hold what all configurations of a slate share wherever that is
// run: they are compared without it, as differences to the first configuration of their slate.
UnitScores without_shift(UnitScores scores, const Plan& plan) {
  const std::vector<std::int32_t>& slates = plan.readout.slate_of_config;
  double first = 0;
  for (std::size_t i = 0; i < scores.delta.size(); ++i) {
    const std::size_t k = i % slates.size();
    if (k == 0 || slates[k] != slates[k - 1]) first = scores.delta[i];
    scores.delta[i] -= first;
  }
  return scores;
}

// A loss that ignores a shift has the same gradient whether all rows are run, or only the needed
// ones backward, or only those in both passes.
TEST(Network, LeavesOutWhatOnlyShiftsTheScores) {
  ThreadPool pool(2, use_one_thread_per_worker);
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    const Network network(test.config, test.schema, -1, pool);
    const AlignedFloats flat = test::random_parameters(network, 2, 1);
    for (const UnitInput& unit :
         {refined_unit(network, test.slates), test::make_unit(network, test.slates)}) {
      const CallResult all = call(network, flat, 0, 2, unit, Shift::ignored);
      const auto expect_same = [&](const CallResult& result) {
        if (network.config().is_composed()) {
          expect_near_scores(without_shift(result.scores, *unit.plan),
                             without_shift(all.scores, *unit.plan));
        } else {
          expect_near_scores(result.scores, all.scores);
        }
        for (int m = 0; m < 2; ++m) {
          std::vector<float> difference = result.gradients[m];
          for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= all.gradients[m][i];
          EXPECT_LE(norm(difference), 1e-5 * norm(all.gradients[m]) + 1e-9);
        }
      };
      expect_same(call(network, flat, 0, 2, unit, Shift::ignored_and_told));
      expect_same(call(network, flat, 0, 2, unit, Shift::ignored_by_caller));
    }
  }
}

// No row is needed where nothing differs from configuration to configuration.
TEST(Network, ASingleConfigurationHasNoGradient) {
  ThreadPool pool(1, use_one_thread_per_worker);
  const Case test = cases()[0];
  const std::vector<SlateCase> slates = layout_slates({9}, {1});
  for (const bool recompute : {false, true}) {
    const Network network(test.config, test.schema, -1, pool, recompute);
    const AlignedFloats flat = test::random_parameters(network, 2, 1);
    for (const Shift shift : {Shift::ignored_and_told, Shift::ignored_by_caller}) {
      const CallResult result = call(network, flat, 0, 2, refined_unit(network, slates), shift);
      for (const std::vector<float>& gradient : result.gradients) EXPECT_EQ(norm(gradient), 0);
    }
  }
  NetworkConfig config = test.config;
  config.general = true;
  const Network layers(config, test.schema, -1, pool);
  const AlignedFloats flat = test::random_parameters(layers, 2, 1);
  const UnitInput unit = refined_unit(layers, slates);
  for (const DeviceContext& place : {DeviceContext{}, {at::kCPU, make_device_backend}}) {
    UnitScores scores;
    std::vector<std::vector<float>> gradients(2, std::vector<float>(flat.size() / 2, 7.0f));
    const std::vector<std::span<float>> spans(gradients.begin(), gradients.end());
    make_composed_executor(config, test.schema, false, pool, place)
        ->gradient({flat, 0, 2}, unit,
                   test::weighted_sum(*unit.plan, Shift::ignored_and_told, scores), spans, true);
    for (const std::vector<float>& gradient : gradients) EXPECT_EQ(norm(gradient), 0);
  }
}

// Fused layers and those of composed networks: on the CPU, and all members together on the emulated device.
TEST(Network, LayersEqualFusedLayers) {
  ThreadPool pool(2, use_one_thread_per_worker);
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    NetworkConfig config = test.config;
    config.general = true;
    const Network network(test.config, test.schema, -1, pool),
        layers(config, test.schema, -1, pool);
    // The same numbers by name, in another order.
    const AlignedFloats flat = test::random_parameters(network, 3, 8),
                        own_flat = test::random_parameters(layers, 3, 8);
    const auto ordered = [&](std::span<const float> gradient) {
      std::vector<float> moved(static_cast<std::size_t>(network.parameters().length()));
      for (const ParameterEntry& entry : network.parameters().entries()) {
        const ParameterEntry& own = layers.parameters().find(entry.name);
        std::ranges::copy(gradient.subspan(own.offset, own.size()), moved.begin() + entry.offset);
      }
      return moved;
    };
    for (const bool refined : {false, true}) {
      const auto unit_of = [&](const Network& own) {
        return refined ? refined_unit(own, test.slates) : test::make_unit(own, test.slates);
      };
      const UnitInput unit = unit_of(layers);
      for (const Shift shift : {Shift::counts, Shift::ignored_and_told}) {
        const CallResult expected = call(network, flat, 1, 2, unit_of(network), shift);
        for (const DeviceContext& place : {DeviceContext{}, {at::kCPU, make_device_backend}}) {
          const auto executor = make_composed_executor(config, test.schema, false, pool, place);
          CallResult result;
          result.gradients.assign(2, std::vector<float>(own_flat.size() / 3, 7.0f));
          const std::vector<std::span<float>> spans(result.gradients.begin(),
                                                    result.gradients.end());
          executor->gradient({own_flat, 1, 2}, unit,
                             test::weighted_sum(*unit.plan, shift, result.scores), spans, true);
          EXPECT_EQ(executor->scores({own_flat, 1, 2}, unit).delta, result.scores.delta);
          for (int m = 0; m < 2; ++m) {
            EXPECT_LE(distance(all_scores(expected.scores, *unit.plan, m),
                               all_scores(result.scores, *unit.plan, m)),
                      1e-5);
            EXPECT_LE(distance(expected.gradients[m], ordered(result.gradients[m])), 1e-5);
          }
        }
      }
    }
  }
}

TEST(Network, NeedsKernelsForADevice) {
  if (runs_on_gpus()) return;
  ThreadPool pool(1);
  EXPECT_THROW(Network(NetworkConfig::preset("latenciaga_xla"), kLayoutSchema, 0, pool),
               ConfigError);
}

void expect_bits(const Case& test, bool refined) {
  constexpr int kMembers = 4;
  std::vector<CallResult> alone;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads, use_one_thread_per_worker);
    const Network network(test.config, test.schema, -1, pool);
    const AlignedFloats flat = test::random_parameters(network, kMembers, 3);
    AlignedFloats moved(flat.size() + 1);  // not aligned
    std::copy(flat.begin(), flat.end(), moved.begin() + 1);
    const UnitInput unit =
        refined ? refined_unit(network, test.slates) : test::make_unit(network, test.slates);
    for (int m = 0; threads == 1 && m < kMembers; ++m)
      alone.push_back(call(network, flat, m, 1, unit));
    for (const auto& [first, count] :
         {std::pair(0, 4), std::pair(1, 3), std::pair(2, 1), std::pair(0, 2)}) {
      const CallResult together = call(
          network, first ? std::span<const float>(flat) : std::span<const float>(moved).subspan(1),
          first, count, unit);
      const UnitScores only_scores = network.scores(flat, first, count, unit);
      EXPECT_EQ(only_scores.delta, together.scores.delta);
      for (int m = 0; m < count; ++m) {
        EXPECT_EQ(together.gradients[m], alone[first + m].gradients[0]) << "member " << first + m;
        const auto scores = std::span(together.scores.delta)
                                .subspan(m * together.scores.configs, together.scores.configs);
        EXPECT_TRUE(std::ranges::equal(scores, alone[first + m].scores.delta))
            << "member " << first + m;
      }
    }
  }
}

TEST(Network, BitsDoNotDependOnMembersThreadsOrAddresses) {
  for (Case test : cases()) {
    SCOPED_TRACE(test.name);
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
      test.config.precision = precision;
      expect_bits(test, false);
      expect_bits(test, true);
    }
    test.config.general = true;
    expect_bits(test, true);
  }
}

// Operands of fewer binary digits move scores a little and gradients, where an activation falls to
// the other side, a little more. By fused and by general operators.
void expect_close_to_fp32(Precision precision, double least, double most) {
  ThreadPool pool(2, use_one_thread_per_worker);
  for (Case test : cases()) {
    for (const bool general : {false, true}) {
      SCOPED_TRACE(std::string(test.name) + (general ? ", general" : ""));
      test.config.general = general;
      test.config.precision = Precision::fp32;
      const Network exact(test.config, test.schema, -1, pool);
      test.config.precision = precision;
      const Network network(test.config, test.schema, -1, pool);
      const AlignedFloats flat = test::random_parameters(network, 2, 8);
      for (const bool refined : {false, true}) {
        const auto unit_of = [&](const Network& own) {
          return refined ? refined_unit(own, test.slates) : test::make_unit(own, test.slates);
        };
        const UnitInput unit = unit_of(network);
        const CallResult fp32 = call(exact, flat, 0, 2, unit_of(exact)),
                         rounded = call(network, flat, 0, 2, unit);
        for (int m = 0; m < 2; ++m) {
          const double moved = distance(fp32.gradients[m], rounded.gradients[m]);
          EXPECT_LE(moved, most);
          EXPECT_GE(moved, least);  // rounds indeed
          // Scores are sums of both signs, which cancel in part.
          EXPECT_LE(distance(all_scores(fp32.scores, *unit.plan, m),
                             all_scores(rounded.scores, *unit.plan, m)),
                    most / 2);
        }
      }
    }
  }
}

TEST(Network, Tf32IsCloseToFp32) {
  expect_close_to_fp32(Precision::tf32, 1e-4, 0.03);
}

TEST(Network, Bf16IsCloseToFp32) {
  expect_close_to_fp32(Precision::bf16, 1e-3, 0.2);
}

TEST(Network, RecomputingChangesNoBit) {
  ThreadPool pool(2, use_one_thread_per_worker);
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    const Network keeps(test.config, test.schema, -1, pool);
    const Network recomputes(test.config, test.schema, -1, pool, true);
    const AlignedFloats flat = test::random_parameters(keeps, 3, 3);
    for (const UnitInput& unit :
         {refined_unit(keeps, test.slates), test::make_unit(keeps, test.slates)}) {
      for (const Shift shift : {Shift::counts, Shift::ignored_and_told, Shift::ignored_by_caller}) {
        const CallResult expected = call(keeps, flat, 0, 3, unit, shift);
        const CallResult actual = call(recomputes, flat, 0, 3, unit, shift);
        EXPECT_EQ(actual.scores.delta, expected.scores.delta);
        EXPECT_EQ(actual.gradients, expected.gradients);
      }
    }
  }
}

TEST(Network, UnitsRunSideBySideWithEqualBits) {
  ThreadPool pool(3, use_one_thread_per_worker);
  const Case test = cases()[0];
  const Network network(test.config, test.schema, -1, pool);
  const AlignedFloats flat = test::random_parameters(network, 2, 3);
  const UnitInput unit = test::make_unit(network, test.slates);
  const CallResult expected = call(network, flat, 0, 2, unit);
  std::vector<CallResult> results(8);
  pool.parallel_for(8, [&](std::int64_t i) { results[i] = call(network, flat, 0, 2, unit); });
  for (const CallResult& result : results) EXPECT_EQ(result.gradients, expected.gradients);
}

TEST(Network, PaddingOfTheGradientIsZero) {
  ThreadPool pool(1);
  const Case test = cases()[3];
  const Network network(test.config, test.schema, -1, pool);
  const AlignedFloats flat = test::random_parameters(network, 1, 3);
  std::vector<float> gradient =
      call(network, flat, 0, 1, test::make_unit(network, test.slates)).gradients[0];
  for (const ParameterEntry& entry : network.parameters().entries()) {
    std::fill_n(gradient.begin() + entry.offset, entry.size(), 0.0f);
  }
  EXPECT_EQ(gradient, std::vector<float>(gradient.size(), 0.0f));
}

TEST(Network, InitialisesLikePyTorchGeometricByName) {
  ThreadPool pool(1);
  const Network network(NetworkConfig::preset("latenciaga_nlp"), kLayoutSchema, -1, pool);
  const AlignedFloats flat = test::random_parameters(network, 2, 9);
  const auto values = [&](const char* name) {
    const ParameterEntry& entry = network.parameters().find(name);
    return std::span(flat).subspan(entry.offset, entry.size());
  };
  const auto spread = [](std::span<const float> x) {
    double square = 0;
    for (const float v : x) square += static_cast<double>(v) * v;
    return std::sqrt(square / x.size());
  };
  EXPECT_NEAR(spread(values("encoder.opcode.weight")), 1, 0.08);  // normal
  EXPECT_NEAR(spread(values("blocks.1.sage.self.weight")), 1 / std::sqrt(3 * 256.),
              5e-4);  // uniform
  const std::span<const float> bias = values("blocks.5.sage.neighbours.bias");
  EXPECT_LE(std::abs(std::ranges::max(bias)), 1 / std::sqrt(512.));
  EXPECT_GT(std::ranges::max(bias), 0.9 / std::sqrt(512.));
  EXPECT_NE(values("blocks.1.sage.self.weight")[0], values("blocks.1.sage.neighbours.weight")[0]);
  EXPECT_NE(flat[0], flat[network.parameters().length()]);  // the other member
}

TEST(Network, RefusesCallsThatDoNotFit) {
  ThreadPool pool(1);
  const Case test = cases()[0];
  const Network network(test.config, test.schema, -1, pool);
  const AlignedFloats flat = test::random_parameters(network, 1, 3);
  UnitInput unit = test::make_unit(network, test.slates);
  EXPECT_THROW(network.scores(flat, 0, 2, unit), Error);
  EXPECT_THROW(network.scores(std::span(flat).first(flat.size() - 1), 0, 1, unit), Error);
  unit.states.pop_back();
  EXPECT_THROW(network.scores(flat, 0, 1, unit), Error);
  unit = test::make_unit(network, test.slates);
  unit.graphs.clear();
  EXPECT_THROW(network.scores(flat, 0, 1, unit), Error);
  const Network deeper(NetworkConfig::preset("latenciaga_nlp"), kLayoutSchema, -1, pool);
  EXPECT_THROW(deeper.scores(test::random_parameters(deeper, 1, 1), 0, 1,
                             test::make_unit(network, test.slates)),
               Error);
  EXPECT_THROW(
      network.graph_arrays(std::vector<float>(kNodeFeatures), std::vector<std::uint8_t>{kOpcodes}),
      DataError);
  EXPECT_THROW(network.graph_arrays(std::vector<float>(139), std::vector<std::uint8_t>{1}),
               DataError);
  EXPECT_THROW(Network(NetworkConfig{}, kLayoutSchema, -1, pool), ConfigError);
}

}  // namespace
}  // namespace tpudist
