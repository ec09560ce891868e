#include "statistics/ranking/measured_correction.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNan;

using Values = std::vector<double>;
using States = std::vector<std::int32_t>;

// All configurations of six operations with two states each.
struct SmallSpace {
  static constexpr std::size_t kOperations = 6, kConfigs = 1 << kOperations;
  States states;  // [c][n]

  SmallSpace() {
    for (std::size_t k = 0; k < kConfigs; ++k) {
      for (std::size_t i = 0; i < kOperations; ++i) states.push_back(static_cast<std::int32_t>(10 * i) + bit(k, i));
    }
  }
  static int bit(std::size_t config, std::size_t operation) {
    return static_cast<int>(config >> operation & 1);
  }
};

TEST(MeasuredCorrection, KeepsTheOrderOfTooFewOrEqualMeasurements) {
  const Values scores{3, 1, 2};
  const States states{0, 1, 2};
  const MeasuredCorrection none = correct_by_measurements(scores, states, {});
  EXPECT_EQ(none.scores, scores);
  EXPECT_THAT(none.times, Each(IsNan()));
  EXPECT_EQ(none.measured, 0u);
  const MeasuredCorrection few =
      correct_by_measurements(scores, states, std::vector<Measurement>{{0, 10}, {1, 20}, {1, 20}});
  EXPECT_EQ(few.scores, scores);
  EXPECT_EQ(few.measured, 2u);
  EXPECT_NEAR(few.times[1], 20, 1e-12);
  EXPECT_THAT(few.times[2], IsNan());
  EXPECT_THAT(few.why_not, HasSubstr("three measured configurations"));
  const MeasuredCorrection equal =
      correct_by_measurements(scores, states, std::vector<Measurement>{{0, 5}, {1, 5}, {2, 5}});
  EXPECT_EQ(equal.scores, scores);
  EXPECT_THAT(equal.why_not, HasSubstr("times are equal"));
}

TEST(MeasuredCorrection, MeasuredConfigurationsHaveTheirGeometricMeanTime) {
  const MeasuredCorrection found = correct_by_measurements(
      Values{1, 2, 3, 4}, States{0, 1, 2, 3},
      std::vector<Measurement>{{0, 30}, {1, 10}, {1, 40}, {2, 10}});
  EXPECT_EQ(found.why_not, "");
  EXPECT_EQ(found.measured, 3u);
  EXPECT_NEAR(found.times[1], 20, 1e-12);
  EXPECT_THAT(found.times[3], IsNan());
  for (const std::size_t k : {0, 1, 2}) EXPECT_DOUBLE_EQ(found.scores[k], std::log(found.times[k]));
  EXPECT_EQ(found.tau_before, -1);
}

TEST(MeasuredCorrection, PredictsTheTimesOfAModelThatIsRight) {
  const SmallSpace space;
  Values scores, logs;
  for (std::size_t k = 0; k < SmallSpace::kConfigs; ++k) {
    logs.push_back(5 + 0.01 * static_cast<double>(k * 37 % 64));
    scores.push_back(3 * logs.back() - 100);
  }
  std::vector<Measurement> measured;
  for (std::size_t k = 0; k < 20; ++k) measured.push_back({k, std::exp(logs[k])});
  const MeasuredCorrection found = correct_by_measurements(scores, space.states, measured);
  EXPECT_EQ(found.tau_before, 1);
  EXPECT_EQ(found.tau_after, 1);
  for (std::size_t k = 0; k < scores.size(); ++k) EXPECT_NEAR(found.scores[k], logs[k], 1e-9);
}

// The model does not see that one operation's state doubles the time.
TEST(MeasuredCorrection, LearnsTheEffectOfAStateThatTheModelMisses) {
  const SmallSpace space;
  Values scores;
  std::vector<Measurement> measured;
  for (std::size_t k = 0; k < SmallSpace::kConfigs; ++k) {
    const double seen = 0.1 * SmallSpace::bit(k, 0) + 0.05 * SmallSpace::bit(k, 1);
    scores.push_back(seen);
    if (k % 5 < 2) measured.push_back({k, 1000 * std::exp(seen + 0.7 * SmallSpace::bit(k, 4))});
  }
  const MeasuredCorrection found = correct_by_measurements(scores, space.states, measured);
  EXPECT_LT(found.tau_before, 0.5);
  EXPECT_GT(found.tau_after, 0.8);
  EXPECT_LT(found.ridge, std::numeric_limits<double>::infinity());
  double slowest_of_fast = -1e9, fastest_of_slow = 1e9;
  for (std::size_t k = 0; k < SmallSpace::kConfigs; ++k) {
    if (SmallSpace::bit(k, 4) == 0)
      slowest_of_fast = std::max(slowest_of_fast, found.scores[k]);
    else
      fastest_of_slow = std::min(fastest_of_slow, found.scores[k]);
  }
  EXPECT_LT(slowest_of_fast, fastest_of_slow);
}

TEST(MeasuredCorrection, DependsOnNoUnitAndOnNoNumberOfAState) {
  const SmallSpace space;
  CounterRng random(3);
  Values scores, in_seconds;
  std::vector<Measurement> measured, seconds;
  States renamed = space.states;
  for (std::int32_t& state : renamed) state = 1000 - 7 * state;
  for (std::size_t k = 0; k < SmallSpace::kConfigs; ++k) {
    scores.push_back(random.normal());
    if (k % 3 == 0) measured.push_back({k, random.uniform(1e6, 2e6)});
  }
  for (const Measurement& own : measured) seconds.push_back({own.config, own.time * 1e-9});
  const MeasuredCorrection a = correct_by_measurements(scores, space.states, measured),
                           b = correct_by_measurements(scores, renamed, seconds);
  EXPECT_EQ(a.tau_before, b.tau_before);
  EXPECT_NEAR(a.tau_after, b.tau_after, 1e-9);
  for (std::size_t k = 0; k < scores.size(); ++k)
    EXPECT_NEAR(a.scores[k], b.scores[k] - std::log(1e-9), 1e-6);
}

// More would take minutes: the time grows with their cube.
TEST(MeasuredCorrection, UsesAFewHundredOfManyMeasurements) {
  constexpr std::size_t kConfigs = 4000;
  CounterRng random(4);
  Values scores;
  States states;
  std::vector<Measurement> measured;
  for (std::size_t k = 0; k < kConfigs; ++k) {
    states.push_back(static_cast<std::int32_t>(random.below(2)));
    scores.push_back(random.normal());
    measured.push_back({k, std::exp(0.1 * scores.back() + states.back())});
  }
  const MeasuredCorrection found = correct_by_measurements(scores, states, measured);
  EXPECT_EQ(found.measured, kConfigs);
  EXPECT_GT(found.tau_after, found.tau_before);
}

TEST(MeasuredCorrection, RefusesWhatIsNoMeasurement) {
  const Values scores{1, 2};
  for (const double time : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(correct_by_measurements(scores, States{0, 1}, std::vector<Measurement>{{0, time}}),
                 Error);
  EXPECT_THROW(correct_by_measurements(scores, States{0, 1}, std::vector<Measurement>{{2, 1}}),
               Error);
  EXPECT_THROW(correct_by_measurements(scores, States{0, 1, 2}, std::vector<Measurement>{{0, 1}}),
               Error);
}

}  // namespace
}  // namespace tpudist
