// The rounding of float32 in the scores and gradients that ranking depends on: refined plans sum
// shared rows once with their multiplicity, which must not cost precision.

#include "tests/models/float_error.hpp"

#include <gtest/gtest.h>

#include "data/schema/feature_schema.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/models/network_case.hpp"
#include "tests/models/repeated_case.hpp"

namespace tpudist {
namespace {

using test::Configurable;
using test::expect_at_most_twice;
using test::RepeatedUnit;
using test::SumOfErrors;

NetworkConfig network_of(std::vector<std::int64_t> widths, bool residual) {
  NetworkConfig config;
  config.encoder = {12, 20, 32};
  std::vector<SageConfig> layers;
  for (const std::int64_t width : widths) {
    SageConfig layer;
    layer.width = width;
    layer.residual = residual;
    layer.mix.edge_kinds = {EdgeKind::consumer_to_producer};
    layers.push_back(layer);
  }
  config.set_sage(layers);
  return config;
}

void compare(const NetworkConfig& config, Configurable configurable, std::uint64_t seed) {
  use_one_thread_per_worker();
  ThreadPool pool(1);
  const Network network(config, configurable == Configurable::tile ? kTileSchema : kLayoutSchema,
                        -1, pool);
  SumOfErrors dense_error, refined_error;
  std::int64_t dense_rows = 0, refined_rows = 0;
  for (int i = 0; i < 6; ++i) {
    CounterRng random(seed, i);
    RepeatedUnit unit;
    unit.graphs.push_back(test::random_graph(random, 15 + random.below(15), 12, configurable,
                                             network.schema().config_features));
    for (int s = 0; s < 2; ++s)
      unit.slates.push_back(test::random_configs(random, unit.graphs, 0, 8));
    const UnitInput dense = test::dense_unit(network, unit),
                    refined = test::refined_unit(network, unit);
    dense_rows += dense.plan->total_rows();
    refined_rows += refined.plan->total_rows();
    std::vector<double> weights;
    for (std::int64_t k = 0; k < dense.plan->configs; ++k) weights.push_back(random.normal());
    weights = test::centred(weights, *dense.plan);
    const AlignedFloats member = test::random_parameters(network, 1, random.next_u64());
    const test::ExactValues exact = test::exact_values(network, member, dense, weights);
    dense_error.add(test::float_error(network, member, dense, weights, exact));
    refined_error.add(test::float_error(network, member, refined, weights, exact));
  }
  EXPECT_LT(2 * refined_rows, dense_rows) << "too little is shared to prove anything";
  expect_at_most_twice("centred scores", dense_error.scores(), refined_error.scores());
  expect_at_most_twice("gradient", dense_error.gradient(), refined_error.gradient());
}

TEST(FloatError, RefinedIsAtMostTwiceDense) {
  compare(network_of({64, 64, 64}, false), Configurable::few, 1);
}
TEST(FloatError, RefinedIsAtMostTwiceDenseInADeepNetwork) {
  compare(network_of({32, 32, 32, 32, 48, 48, 48, 48}, true), Configurable::few, 2);
}
TEST(FloatError, RefinedIsAtMostTwiceDenseInBothDirectionsWithSums) {
  NetworkConfig config = network_of({48, 48, 64}, true);
  std::vector<SageConfig> layers = config.sage_layers();
  for (SageConfig& layer : layers) {
    layer.mix.edge_kinds.push_back(EdgeKind::producer_to_consumer);
    layer.mix.aggregation = Aggregation::sum;
  }
  layers[1].activation = Activation::none;
  config.set_sage(layers);
  config.pools = {Aggregation::mean};
  compare(config, Configurable::few, 5);
}
TEST(FloatError, RefinedIsAtMostTwiceDenseWithMaxima) {
  NetworkConfig config = network_of({64, 64, 64}, false);
  std::vector<SageConfig> layers = config.sage_layers();
  for (SageConfig& layer : layers) layer.mix.aggregation = Aggregation::max;
  config.set_sage(layers);
  compare(config, Configurable::few, 6);
}
TEST(FloatError, RefinedIsAtMostTwiceDenseWhereEveryNodeIsConfigurable) {
  compare(network_of({64, 64, 64}, false), Configurable::all, 3);
}
TEST(FloatError, RefinedIsAtMostTwiceDenseOnTileGraphs) {
  compare(network_of({32, 32, 48, 48}, false), Configurable::tile, 4);
}

}  // namespace
}  // namespace tpudist
