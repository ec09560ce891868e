#include "statistics/noise/run_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "tests/support/level_sequence.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

// The series of tests/golden/run_order.py: many ties, and a slow rise.
Values golden_series() {
  Values series = test::level_sequence(260, 5, 40);
  for (std::size_t i = 0; i < series.size(); ++i) series[i] += static_cast<double>(i / 20);
  return series;
}

std::vector<std::int32_t> all_different(std::size_t n) {
  std::vector<std::int32_t> config(n);
  std::iota(config.begin(), config.end(), 0);
  return config;
}

TEST(Drift, EqualsSciPy) {
  const OrderStatistic drift = drift_of(golden_series());
  EXPECT_NEAR(drift.value, 0.21497213305776797, 1e-12);
  EXPECT_NEAR(drift.p, 4.820870258283294e-4, 1e-4);  // the t distribution's
}

TEST(Drift, IsOneForARiseAndMinusOneForAFall) {
  Values series(150);
  std::iota(series.begin(), series.end(), 0.0);
  EXPECT_DOUBLE_EQ(drift_of(series).value, 1);
  std::reverse(series.begin(), series.end());
  EXPECT_DOUBLE_EQ(drift_of(series).value, -1);
  EXPECT_LT(drift_of(series).p, 1e-30);
}

TEST(Drift, IsNotToldOfAFewOrOfEqualValues) {
  EXPECT_TRUE(std::isnan(drift_of(Values(99, 1.0)).value));
  EXPECT_TRUE(std::isnan(drift_of(Values(150, 1.0)).value));
  EXPECT_EQ(drift_of(Values(150, 1.0)).p, 1);
}

TEST(BlockDivergence, EqualsSciPy) {
  const OrderStatistic found = block_divergence_of(golden_series(), 1);
  EXPECT_NEAR(found.value, 0.3744686833040988, 1e-12);
  EXPECT_EQ(found.first, 234);
  EXPECT_EQ(found.count, 26);
}

TEST(BlockDivergence, FindsABlockOfOneKindOfValues) {
  CounterRng random(1);
  Values series(2000);
  for (double& value : series) value = random.uniform();
  const OrderStatistic sound = block_divergence_of(series, 7);
  EXPECT_GT(sound.p, 1e-3);
  for (std::size_t i = 1200; i < 1300; ++i) series[i] = 0.001 * random.uniform();
  const OrderStatistic found = block_divergence_of(series, 7);
  EXPECT_EQ(found.first, 1200);
  EXPECT_EQ(found.count, 100);
  EXPECT_GT(found.value, 2);  // of at most 3 bits
  EXPECT_LT(found.p, 1e-12);
  EXPECT_LT(found.by_chance, 0.2);
}

TEST(BlockDivergence, IsAPureFunctionOfSeriesAndKey) {
  const Values series = golden_series();
  EXPECT_EQ(block_divergence_of(series, 1).p, block_divergence_of(series, 1).p);
  EXPECT_NE(block_divergence_of(series, 1).by_chance, block_divergence_of(series, 2).by_chance);
}

TEST(BlockDivergence, OfEqualValuesIsNothing) {
  const OrderStatistic found = block_divergence_of(Values(300, 5.0), 1);
  EXPECT_EQ(found.value, 0);
  EXPECT_EQ(found.p, 1);
}

TEST(BlockDivergence, PValuesOfSoundSeriesAreThoseOfChance) {
  int small = 0;
  for (std::uint64_t key = 0; key < 200; ++key) {
    CounterRng random(key);
    Values series(500);
    for (double& value : series) value = random.normal();
    small += block_divergence_of(series, key).p < 0.05;
  }
  EXPECT_GE(small, 2);  // 10 are expected
  EXPECT_LE(small, 22);
}

TEST(LongestRepetition, FindsEqualValuesOfDifferentConfigurations) {
  Values series(200);
  std::iota(series.begin(), series.end(), 1000.0);
  std::vector<std::int32_t> config = all_different(200);
  EXPECT_EQ(longest_repetition_of(series, config).value, 1);
  for (std::size_t i = 50; i < 57; ++i) series[i] = 7;
  const OrderStatistic frozen = longest_repetition_of(series, config);
  EXPECT_EQ(frozen.value, 7);
  EXPECT_EQ(frozen.first, 50);
  EXPECT_EQ(frozen.by_chance, 1);
  EXPECT_LT(frozen.p, 1e-10);
  for (std::size_t i = 50; i < 57; ++i) config[i] = 50;  // the same configuration, again and again
  EXPECT_EQ(longest_repetition_of(series, config).value, 1);
}

TEST(LongestRepetition, IsLikelyWhereFewValuesOccur) {
  const Values series = test::level_sequence(1000, 3, 2);
  const OrderStatistic found = longest_repetition_of(series, all_different(1000));
  EXPECT_GT(found.value, 5);
  EXPECT_GT(found.p, 0.01);
}

TEST(LongestRepetition, RefusesSeriesOfDifferentLengths) {
  EXPECT_THROW(longest_repetition_of(Values(100), all_different(99)), Error);
}

}  // namespace
}  // namespace tpudist
