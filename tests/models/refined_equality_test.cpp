// The network on refined and on dense plans, in double: outputs and gradients are the same function
// of the same parameters, so that they agree to rounding.

#include <gtest/gtest.h>

#include "data/schema/feature_schema.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/models/naive_network.hpp"
#include "tests/models/network_case.hpp"
#include "tests/models/plan_autograd.hpp"
#include "tests/models/plans/check_plan.hpp"
#include "tests/models/repeated_case.hpp"
#include "tests/models/score_vectors.hpp"

namespace tpudist {
namespace {

using test::centred;
using test::Configurable;
using test::distance;
using test::norm;
using test::PlanAutograd;
using test::RepeatedUnit;
using test::values;

constexpr double kTolerance = 1e-9;

NetworkConfig random_network(CounterRng& random) {
  NetworkConfig config;
  const auto width = [&] { return static_cast<std::int64_t>(5 + random.below(4)); };
  config.encoder = {static_cast<std::int64_t>(1 + random.below(3)),
                    static_cast<std::int64_t>(2 + random.below(4)), width()};
  config.pools = {random.below(2) ? Aggregation::mean : Aggregation::sum};
  config.output_scale = 0.5;
  std::int64_t before = config.encoder.width;
  std::vector<SageConfig> layers;
  for (std::uint64_t depth = 1 + random.below(6); depth > 0; --depth) {
    SageConfig layer;
    layer.residual = random.below(2);
    layer.width = before = layer.residual ? before : width();
    const std::uint64_t directions = random.below(10);  // now and then none
    if (directions % 3 != 1 && directions != 9)
      layer.mix.edge_kinds.push_back(EdgeKind::consumer_to_producer);
    if (directions % 3 != 0) layer.mix.edge_kinds.push_back(EdgeKind::producer_to_consumer);
    layer.mix.aggregation = static_cast<Aggregation>(random.below(3));
    layer.activation = random.below(3) ? Activation::relu : Activation::none;
    layers.push_back(layer);
  }
  config.set_sage(layers);
  return config;
}

// Slates of `graphs` graphs in mixed order, at least one of each.
RepeatedUnit random_unit(CounterRng& random, int graphs, int slates, Configurable configurable) {
  const int features =
      configurable == Configurable::tile ? kTileConfigFeatures : kLayoutConfigFeatures;
  RepeatedUnit unit;
  for (int g = 0; g < graphs; ++g) {
    unit.graphs.push_back(test::random_graph(random, 1 + random.below(7), 1 + random.below(5),
                                             configurable, features));
  }
  const bool equal_sizes = random.below(2);  // dense plans have lanes then
  const auto configs = static_cast<std::int64_t>(1 + random.below(12));
  for (int s = 0; s < slates; ++s) {
    const auto own = equal_sizes ? configs : static_cast<std::int64_t>(1 + random.below(12));
    unit.slates.push_back(test::random_configs(random, unit.graphs, s % graphs, own));
  }
  return unit;
}

// `floor`: the size of what cancels in the numbers compared, whose rounding remains.
void expect_equal_numbers(std::span<const double> actual, std::span<const double> expected,
                          double floor, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  EXPECT_LE(distance(actual, expected), kTolerance * norm(expected) + 1e-13 * floor)
      << what << ", norm " << norm(expected) << ", of what cancels " << floor;
}

void expect_equal_plans(const Network& network, std::span<const float> member,
                        const UnitInput& dense, const UnitInput& refined, CounterRng& random) {
  using Rows = PlanAutograd::Rows;
  check_plan(*dense.plan);
  check_plan(*refined.plan);
  PlanAutograd net(network, member);
  const auto expected = net.scores(dense), actual = net.scores(refined);
  const auto whole = values(expected.delta + expected.common);
  expect_equal_numbers(values(actual.delta + actual.common), whole, 0, "scores");
  const auto spread = centred(whole, *dense.plan);
  for (const Rows rows : {Rows::all, Rows::needed}) {
    for (const UnitInput* unit : {&dense, &refined}) {
      const auto delta = values(net.scores(*unit, rows).delta);
      expect_equal_numbers(centred(delta, *unit->plan), spread, norm(whole), "centred scores");
    }
  }

  std::vector<double> weights;
  for (std::int64_t k = 0; k < dense.plan->configs; ++k) weights.push_back(random.normal());
  const auto gradient = net.gradient(dense, weights);
  EXPECT_GT(norm(gradient), 0);
  expect_equal_numbers(net.gradient(refined, weights), gradient, 0, "gradient");
  const auto free = centred(weights, *dense.plan);
  const auto free_gradient = net.gradient(dense, free);
  for (const Rows rows : {Rows::all, Rows::needed}) {
    for (const UnitInput* unit : {&dense, &refined}) {
      expect_equal_numbers(net.gradient(*unit, free, rows), free_gradient, norm(gradient),
                           "gradient of a loss that ignores a shift");
    }
  }
}

void run_cases(std::uint64_t seed, int cases, int graphs, int slates, Configurable configurable) {
  use_one_thread_per_worker();  // small tensors
  ThreadPool pool(1);
  std::int64_t dense_rows = 0, refined_rows = 0;
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i);
    CounterRng random(seed, i);
    const RepeatedUnit unit = random_unit(random, graphs, slates, configurable);
    const Network network(random_network(random),
                          configurable == Configurable::tile ? kTileSchema : kLayoutSchema, -1,
                          pool);
    const AlignedFloats flat = test::random_parameters(network, 1, random.next_u64());
    const UnitInput dense = test::dense_unit(network, unit),
                    refined = test::refined_unit(network, unit, random.below(2) ? 8 : 64);
    expect_equal_plans(network, flat, dense, refined, random);
    if (::testing::Test::HasFailure()) return;
    dense_rows += dense.plan->total_rows();
    refined_rows += refined.plan->total_rows();
  }
  EXPECT_LT(2 * refined_rows, dense_rows) << "too little is shared to prove anything";
}

TEST(RefinedEquality, OneSlate) {
  run_cases(1, 60, 1, 1, Configurable::few);
}
TEST(RefinedEquality, EveryNodeConfigurable) {
  run_cases(2, 30, 1, 1, Configurable::all);
}
TEST(RefinedEquality, Tile) {
  run_cases(3, 30, 1, 2, Configurable::tile);
}
TEST(RefinedEquality, SlatesOfOneGraph) {
  run_cases(4, 40, 1, 3, Configurable::few);
}
TEST(RefinedEquality, SlatesOfSeveralGraphs) {
  run_cases(5, 40, 2, 4, Configurable::few);
}
TEST(RefinedEquality, TileSlatesOfSeveralGraphs) {
  run_cases(6, 20, 3, 4, Configurable::tile);
}

// What the proofs rest on: the evaluation itself, against one copy of the graph for each
// configuration. Features are float32 after log1p here and double there.
TEST(RefinedEquality, EvaluatesAsNaiveNetworkDoes) {
  ThreadPool pool(1);
  for (int i = 0; i < 10; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i);
    CounterRng random(7, i);
    const Network network(random_network(random), kLayoutSchema, -1, pool);
    const AlignedFloats flat = test::random_parameters(network, 1, i);
    const std::vector<test::SlateCase> slates{
        test::random_slate(i, 9, 3, 2, kLayoutConfigFeatures),
        test::random_slate(i + 99, 6, 2, 1, kLayoutConfigFeatures)};
    const UnitInput unit = test::make_unit(network, slates);
    PlanAutograd net(network, flat);
    const test::NaiveNetwork naive(network, flat);
    const auto expected = values(naive.scores(slates));
    const auto scores = net.scores(unit);
    EXPECT_LE(distance(values(scores.delta + scores.common), expected), 1e-6 * norm(expected));
    const std::vector<double> weights{1, -2, 0.5, 3, -1};
    const auto gradient = naive.gradient(slates, weights);
    EXPECT_LE(distance(net.gradient(unit, weights), gradient), 1e-6 * norm(gradient));
  }
}

// And that they see a single wrong number of a plan.
TEST(RefinedEquality, SeesOneWrongMultiplicity) {
  ThreadPool pool(1);
  NetworkConfig config;
  config.encoder = {2, 3, 5};
  std::vector<SageConfig> layers(2);
  for (SageConfig& layer : layers) {
    layer.width = 5;
    layer.mix.edge_kinds = {EdgeKind::consumer_to_producer};
  }
  config.set_sage(layers);
  const Network network(config, kLayoutSchema, -1, pool);
  const AlignedFloats flat = test::random_parameters(network, 1, 5);
  CounterRng random(8);
  RepeatedUnit unit;
  unit.graphs = {test::random_graph(random, 5, 4, Configurable::few, kLayoutConfigFeatures)};
  unit.slates = {test::random_configs(random, unit.graphs, 0, 6)};
  UnitInput refined = test::refined_unit(network, unit);
  PlanAutograd net(network, flat);
  const auto right = values(net.scores(refined).delta);
  Plan wrong = *refined.plan;
  wrong.readout.cells.forward.weight[0] += 1;
  refined.plan = std::make_shared<Plan>(wrong);
  EXPECT_GT(distance(values(net.scores(refined).delta), right), 1e-6 * norm(right));
}

TEST(RefinedEquality, RecoversDivisorsFromFloats) {
  EXPECT_EQ(test::divisor_of(std::vector<float>{2, 3, 1}), 1);
  EXPECT_EQ(test::divisor_of(std::vector<float>{1.0f / 3, 2.0f / 3}), 3);
  EXPECT_EQ(test::divisor_of(std::vector<float>{0.5f, 1.0f / 3, 1.0f / 6}), 6);
  EXPECT_EQ(test::divisor_of(std::vector<float>{1.0f / 14083, 7.0f / 14083}), 14083);
  EXPECT_THROW(test::divisor_of(std::vector<float>{1.0f, 0.0f}), std::runtime_error);
}

}  // namespace
}  // namespace tpudist
