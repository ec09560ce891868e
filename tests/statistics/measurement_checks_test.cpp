#include "statistics/noise/measurement_checks.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "tests/support/level_sequence.hpp"

namespace tpudist {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A graph's measurements: every configuration has a run time of its own, is measured about twice,
// and each time with noise.
struct Measured {
  std::vector<double> times;
  std::vector<std::int32_t> config;
};

Measured sound_graph(std::uint64_t key, std::int64_t count, double noise = 0.001) {
  CounterRng random(key);
  std::vector<double> effect(static_cast<std::size_t>(count) / 2);
  for (double& e : effect) e = 0.3 * random.normal();
  Measured m;
  for (std::int64_t i = 0; i < count; ++i) {
    m.config.push_back(static_cast<std::int32_t>(random.below(effect.size())));
    const double e = effect[static_cast<std::size_t>(m.config.back())];
    m.times.push_back(std::round(1e6 * std::exp(e + noise * random.normal())));
  }
  return m;
}

// What is suspect among `checks` checks of so many graphs.
std::set<CheckKind> suspicions(const Measured& m, MeasuredOrder order = MeasuredOrder::random,
                               std::int64_t graphs = 100) {
  std::set<CheckKind> kinds;
  for (const MeasurementCheck& check : check_measurements(m.times, m.config, order, 1)) {
    if (check.is_suspect(7 * graphs)) kinds.insert(check.kind);
  }
  return kinds;
}

TEST(MeasurementChecks, SoundGraphsAreNotSuspect) {
  constexpr std::int64_t kGraphs = 300;
  for (std::int64_t key = 0; key < kGraphs; ++key) {
    const Measured m = sound_graph(static_cast<std::uint64_t>(key), 120 + 37 * (key % 50));
    EXPECT_THAT(suspicions(m, MeasuredOrder::random, kGraphs), IsEmpty()) << key;
  }
}

TEST(MeasurementChecks, ASearchThatFindsFasterConfigurationsIsNoDrift) {
  Measured m = sound_graph(1, 2000);
  // Slow configurations first, each measured again right away.
  std::vector<std::size_t> order(m.times.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, std::greater<>{}, [&](std::size_t i) { return m.times[i]; });
  Measured searched;
  for (const std::size_t i : order) {
    searched.times.push_back(m.times[i]);
    searched.config.push_back(m.config[i]);
  }
  EXPECT_THAT(suspicions(searched, MeasuredOrder::random), Contains(CheckKind::drift));
  EXPECT_THAT(suspicions(searched, MeasuredOrder::random), Contains(CheckKind::block));
}

TEST(MeasurementChecks, TheOrderOfASearchIsNotJudged) {
  for (const MeasurementCheck& check : check_measurements(
           sound_graph(1, 500).times, sound_graph(1, 500).config, MeasuredOrder::searched, 1)) {
    EXPECT_NE(check.kind, CheckKind::drift);
    EXPECT_NE(check.kind, CheckKind::block);
  }
}

TEST(MeasurementChecks, FindADriftOfTheMachine) {
  Measured m = sound_graph(2, 2000);
  for (std::size_t i = 0; i < m.times.size(); ++i)
    m.times[i] *= 1 + 0.01 * static_cast<double>(i) / 2000;
  // One percent is lost among configurations that differ by 30 %, but not among repeats.
  EXPECT_EQ(suspicions(m, MeasuredOrder::searched), std::set{CheckKind::repeat_drift});
  for (std::size_t i = 0; i < m.times.size(); ++i)
    m.times[i] *= std::exp(static_cast<double>(i) / 2000);
  EXPECT_THAT(suspicions(m), Contains(CheckKind::drift));
}

TEST(MeasurementChecks, FindASlowStretchAndSayWhereItIs) {
  Measured m = sound_graph(3, 3000);
  for (std::size_t i = 700; i < 850; ++i) m.times[i] *= 1.5;
  const auto checks = check_measurements(m.times, m.config, MeasuredOrder::random, 1);
  bool found = false;
  for (const MeasurementCheck& check : checks) {
    if (check.kind != CheckKind::repeat_block) continue;
    found = check.is_suspect(700);
    EXPECT_GE(check.first_row, 600);
    EXPECT_LE(check.last_row, 950);
    EXPECT_THAT(describe(check), HasSubstr("repeats in measurements "));
  }
  EXPECT_TRUE(found);
  EXPECT_THAT(suspicions(m, MeasuredOrder::searched), Contains(CheckKind::repeat_outliers));
}

TEST(MeasurementChecks, FindAFrozenClock) {
  Measured m = sound_graph(4, 1000);
  for (std::size_t i = 300; i < 310; ++i) m.times[i] = m.times[300];
  EXPECT_THAT(suspicions(m, MeasuredOrder::searched), Contains(CheckKind::frozen));
}

TEST(MeasurementChecks, FindRunTimesOfOtherConfigurations) {
  Measured m = sound_graph(5, 1000);
  std::ranges::rotate(m.times, m.times.begin() + 1);
  EXPECT_THAT(suspicions(m, MeasuredOrder::searched), Contains(CheckKind::repeat_disagreement));
}

TEST(MeasurementChecks, AFewMeasurementsAreNotJudged) {
  const Measured m = sound_graph(6, 20);
  EXPECT_THAT(check_measurements(m.times, m.config, MeasuredOrder::random, 1), IsEmpty());
  EXPECT_THAT(check_measurements({}, {}, MeasuredOrder::random, 1), IsEmpty());
}

TEST(RepeatedRows, DeviateFromTheMedianOfTheirConfiguration) {
  const std::vector<double> times{1, 2, 4, std::exp(1.0), 1};
  const std::vector<std::int32_t> config{0, 1, 2, 0, 0};
  const RepeatedRows rows = repeated_rows(times, config);
  EXPECT_EQ(rows.rows, (std::vector<std::int64_t>{0, 3, 4}));
  ASSERT_EQ(rows.deviations.size(), 3u);
  EXPECT_DOUBLE_EQ(rows.deviations[0], 0);
  EXPECT_DOUBLE_EQ(rows.deviations[1], 1);
  EXPECT_THROW(repeated_rows(std::vector<double>{1, 0}, std::vector<std::int32_t>{0, 0}),
               DataError);
  EXPECT_THROW(repeated_rows(times, std::vector<std::int32_t>{0}), Error);
}

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
