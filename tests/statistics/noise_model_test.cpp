#include "statistics/noise/noise_model.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "statistics/noise/measured_configs.hpp"
#include "statistics/noise/noise_ceiling.hpp"
#include "statistics/ranking/metrics.hpp"
#include "tests/support/noisy_graph.hpp"

namespace tpudist {
namespace {

using test::NoisyGraph;
using ::testing::HasSubstr;

TEST(NoiseModel, InterpolatesTheLogarithmOfTheDeviation) {
  const NoiseModel model({1, 3}, {0.01, 0.04});
  EXPECT_DOUBLE_EQ(model.deviation(0), 0.01);
  EXPECT_DOUBLE_EQ(model.deviation(2), 0.02);
  EXPECT_DOUBLE_EQ(model.deviation(9), 0.04);
  EXPECT_DOUBLE_EQ(model.scaled(2).deviation(2), 0.04);
  EXPECT_THROW(NoiseModel({1, 1}, {0.1, 0.1}), Error);
  EXPECT_THROW(NoiseModel({1}, {0.0}), Error);
  EXPECT_THROW(NoiseModel({}, {}), Error);
}

TEST(NoiseShape, NormalHasItsQuantilesAndDensity) {
  const NoiseShape normal;
  EXPECT_NEAR(normal.quantile(0.5), 0, 1e-3);
  EXPECT_NEAR(normal.quantile(0.975), 1.95996, 1e-3);
  EXPECT_NEAR(normal.density(0), 0.3989, 0.002);
  EXPECT_EQ(normal.density(9), 0);
}

TEST(NoiseShape, FindsTwoHumpsBehindTheErrorOfTheMean) {
  CounterRng random(5);
  std::vector<NoiseShape::Deviation> deviations;
  for (int i = 0; i < 3000; ++i) {
    const double noise = NoisyGraph::noise(NoisyGraph::two_humps, random);
    deviations.push_back({noise + 0.4 * random.normal(), 0.4});
  }
  const NoiseShape shape(deviations);
  EXPECT_GT(shape.density(0.97), 4 * shape.density(0));
  EXPECT_GT(shape.density(-0.97), 4 * shape.density(0));
  EXPECT_THROW(NoiseShape(std::span(deviations).first(NoiseShape::kLeast - 1)), Error);
}

TEST(EstimateNoise, FindsADeviationThatGrowsWithTheRunTime) {
  CounterRng random(1);
  std::vector<double> times;
  std::vector<std::int32_t> config;
  for (int c = 0; c < 2000; ++c) {
    const double level = random.uniform(0, 2), deviation = 0.001 * std::exp(level);
    for (int repeat = 0; repeat < 2; ++repeat) {
      times.push_back(1e9 * std::exp(level + deviation * random.normal()));
      config.push_back(c);
    }
  }
  const NoiseEstimate noise = estimate_noise(measured_configs(times, config));
  EXPECT_EQ(noise.repeated_configs, 2000);
  EXPECT_NEAR(noise.relative_error, 1 / std::sqrt(2.0 * 2000), 0.004);
  for (const double level : {0.2, 1.0, 1.8}) {
    const double deviation = noise.model.deviation(std::log(1e9) + level);
    EXPECT_NEAR(deviation / (0.001 * std::exp(level)), 1, 0.2) << level;
  }
}

// Six measurements of a configuration tell a shape, five do not.
TEST(EstimateNoise, TakesTheShapeFromSixRepeats) {
  const auto density = [](int repeats) {
    CounterRng random(3);
    std::vector<double> times;
    std::vector<std::int32_t> config;
    for (int i = 0; i < 200 * repeats; ++i) {
      times.push_back(1e9 * std::exp(0.001 * NoisyGraph::noise(NoisyGraph::two_humps, random)));
      config.push_back(i / repeats);
    }
    const NoiseEstimate noise = estimate_noise(measured_configs(times, config));
    return noise.model.shape(std::log(1e9)).density(0);
  };
  EXPECT_LT(density(6), 0.25);
  EXPECT_NEAR(density(5), 0.3989, 0.002);  // the normal one
}

TEST(EstimateNoise, SaysWhyThereIsNone) {
  const auto fault = [](const std::vector<double>& times, const std::vector<std::int32_t>& config) {
    return fault_of_repeats(measured_configs(times, config));
  };
  EXPECT_EQ(fault({1, 2, 3}, {0, 0, 1}),
            "1 configurations were measured more than once, 30 are needed");
  std::vector<double> times;
  std::vector<std::int32_t> config;
  for (int i = 0; i < 80; ++i) times.push_back(100 + i / 2), config.push_back(i / 2);
  EXPECT_THAT(fault(times, config), HasSubstr("never differ"));
  times[0] += 1;
  EXPECT_EQ(fault(times, config), "");
}

TEST(TrueTimes, FindsTwoLevelsUnderTheNoise) {
  CounterRng random(2);
  std::vector<double> times;
  std::vector<std::int32_t> config;
  for (int c = 0; c < 2000; ++c) {
    times.push_back(1e9 * std::exp((c % 4 == 0 ? 0.0 : 0.003) + 0.001 * random.normal()));
    config.push_back(c);
  }
  const MeasuredConfigs measured = measured_configs(times, config);
  const TrueTimes truth(measured, NoiseModel({0}, {0.001}));
  double all = 0, low = 0, near = 0;
  for (std::size_t j = 0; j < truth.grid().size(); ++j) {
    const double time = truth.grid()[j] - std::log(1e9), weight = truth.weights()[j];
    all += weight;
    if (time < 0.0015) low += weight;
    if (std::abs(time) < 0.0005 || std::abs(time - 0.003) < 0.0005) near += weight;
  }
  EXPECT_NEAR(all, 1, 1e-9);
  EXPECT_NEAR(low, 0.25, 0.03);
  EXPECT_GT(near, 0.75);  // 0.38 of the measurements lie so near
  CounterRng one(7), same(7);
  EXPECT_EQ(truth.draw(one), truth.draw(same));
}

using Values = std::vector<double>;
using Configs = std::vector<std::int32_t>;

constexpr int kConfigs = 2000;
constexpr double kDeviation = 0.004;

// bench/ceiling_table prints this over many seeds.
TEST(NoiseCeiling, ComesNearTheTruth) {
  for (const auto kind :
       {NoisyGraph::smooth, NoisyGraph::levels, NoisyGraph::preferential, NoisyGraph::two_humps}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const NoisyGraph graph(kind, kConfigs, kDeviation, seed);
      const double truth = kendall_tau_b(graph.truth, graph.times);
      const NoiseCeiling estimated = noise_ceiling(graph.times, graph.config);
      ASSERT_TRUE(estimated.value) << estimated.reason;
      EXPECT_NEAR(*estimated.value, truth, 0.02) << NoisyGraph::name_of(kind) << seed;
      EXPECT_LT(estimated.low, *estimated.value);
      EXPECT_GT(estimated.high, *estimated.value);
      EXPECT_NEAR(estimated.noise, kDeviation, 0.15 * kDeviation);
      if (kind == NoisyGraph::two_humps) continue;
      const NoiseModel known({0}, {kDeviation});
      EXPECT_NEAR(*noise_ceiling(graph.times, graph.config, 1, known).value, truth, 0.01)
          << NoisyGraph::name_of(kind) << seed;
    }
  }
}

// Half and twice the width of levels, a quarter of their degrees, a normal shape and one of twice as
// many residuals are as good: the interval holds what comes out with them.
TEST(NoiseCeiling, IntervalHoldsTheChoiceOfTheMethod) {
  const NoisyGraph graph(NoisyGraph::two_humps, 1500, 0.016, 1);
  const NoiseCeiling usual = noise_ceiling(graph.times, graph.config);
  const MeasuredConfigs measured = measured_configs(graph.times, graph.config);
  for (const NoiseChoices choices : {NoiseChoices{1, 20, 150}, NoiseChoices{4, 80, 150},
                                     NoiseChoices{2, 80, 0}, NoiseChoices{2, 80, 300}}) {
    const NoiseModel other = estimate_noise(measured, choices).model;
    const double value = *noise_ceiling(graph.times, graph.config, 1, other).value;
    EXPECT_LT(usual.low, value);
    EXPECT_GT(usual.high, value);
  }
}

// One configuration of five was measured two or three times: no noise can be told from normal
// noise, and a ceiling that is too low would tell users to stop. ceiling_table prints more of it.
TEST(NoiseCeiling, IntervalHoldsOtherNoiseWhereTooFewRepeatsTellItsShape) {
  constexpr int kGraphs = 20;
  for (const auto kind : {NoisyGraph::smooth, NoisyGraph::rising, NoisyGraph::student,
                          NoisyGraph::exponential, NoisyGraph::two_humps}) {
    int inside = 0;
    for (std::uint64_t seed = 1; seed <= kGraphs; ++seed) {
      const NoisyGraph graph(kind, 300, 0.02, seed, true);
      const double truth = kendall_tau_b(graph.truth, graph.times);
      const NoiseCeiling found = noise_ceiling(graph.times, graph.config);
      EXPECT_TRUE(found.normal_assumed);
      EXPECT_THAT(to_text(found), HasSubstr("), noise assumed normal"));
      inside += found.low <= truth && truth <= found.high;
    }
    EXPECT_GE(inside, kGraphs - 2) << NoisyGraph::name_of(kind);
  }
  const NoisyGraph many(NoisyGraph::smooth, 300, 0.02, 1);
  EXPECT_FALSE(noise_ceiling(many.times, many.config).normal_assumed);
}

// Noise that is added to measured times once more opens pairs that are nearly tied.
TEST(NoiseCeiling, IsLowerThanThatOfNoiseAddedToMeasuredTimes) {
  const NoisyGraph graph(NoisyGraph::levels, kConfigs, kDeviation, 1);
  CounterRng random(9);
  Values again;
  for (const double time : graph.means())
    again.push_back(time * std::exp(kDeviation * random.normal()));
  const double added = kendall_tau_b(graph.means(), again);
  EXPECT_GT(added, kendall_tau_b(graph.truth, graph.times) + 0.005);
  EXPECT_LT(*noise_ceiling(graph.times, graph.config).value, added);
}

TEST(NoiseCeiling, IsAFunctionOfItsArgumentsInAnyNumbering) {
  const NoisyGraph graph(NoisyGraph::smooth, 300, kDeviation, 1);
  const NoiseCeiling first = noise_ceiling(graph.times, graph.config);
  const NoiseCeiling again = noise_ceiling(graph.times, graph.config);
  EXPECT_EQ(*first.value, *again.value);
  EXPECT_EQ(first.low, again.low);
  EXPECT_NEAR(*noise_ceiling(graph.times, graph.config, 2).value, *first.value, 0.01);
  Configs renumbered = graph.config;
  for (std::int32_t& config : renumbered) config = 5 - 7 * config;
  EXPECT_EQ(*noise_ceiling(graph.times, renumbered).value, *first.value);
}

TEST(NoiseCeiling, FallsWithTheNoise) {
  double before = 1;
  for (const double deviation : {0.0005, 0.002, 0.008}) {
    const NoisyGraph graph(NoisyGraph::smooth, 500, deviation, 4);
    const double ceiling = *noise_ceiling(graph.times, graph.config).value;
    EXPECT_LT(ceiling, before - 0.005);
    before = ceiling;
  }
}

TEST(NoiseCeiling, SaysWhyThereIsNone) {
  const auto reason = [](const Values& times, const Configs& config) {
    const NoiseCeiling ceiling = noise_ceiling(times, config);
    EXPECT_FALSE(ceiling.value);
    EXPECT_EQ(to_text(ceiling), "none: " + ceiling.reason);
    return ceiling.reason;
  };
  EXPECT_EQ(reason({}, {}), "there are fewer than two configurations to rank");
  EXPECT_EQ(reason({5, 6}, {0, 0}), "there are fewer than two configurations to rank");
  EXPECT_EQ(reason({5, 0}, {0, 1}), "run time 0 of measurement 1 is not positive and finite");
  EXPECT_THAT(reason({5, NAN}, {0, 1}), HasSubstr("run time nan of measurement 1"));
  EXPECT_THAT(reason({INFINITY, 1}, {0, 1}), HasSubstr("run time inf of measurement 0"));
  EXPECT_EQ(reason({5, 6, 7}, {0, 1, 2}),
            "0 configurations were measured more than once, 30 are needed");
  EXPECT_THAT(reason(Values(100, 7.0), Configs(100, 0)), HasSubstr("fewer than two"));
  Configs pairs;
  for (int i = 0; i < 100; ++i) pairs.push_back(i / 2);
  EXPECT_THAT(reason(Values(100, 7.0), pairs), HasSubstr("never differ"));
  EXPECT_THROW(noise_ceiling(Values{1, 2}, Configs{0}), Error);
}

}  // namespace
}  // namespace tpudist
