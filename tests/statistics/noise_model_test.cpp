#include "statistics/noise/noise_model.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "statistics/noise/noise_ceiling.hpp"
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

}  // namespace
}  // namespace tpudist
