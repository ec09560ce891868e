#include "statistics/ranking/measured_correction.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::IsNan;

using Values = std::vector<double>;
using States = std::vector<std::int32_t>;
using MeasuredTimes = std::vector<Measurement>;

TEST(MeasuredCorrection, KeepsTheOrderOfTooFewOrEqualMeasurements) {
  const Values scores{3, 1, 2};
  const States states{0, 1, 2};
  const auto few =
      correct_by_measurements(scores, states, MeasuredTimes{{0, 10}, {1, 20}, {1, 20}});
  EXPECT_EQ(few.scores, scores);
  EXPECT_EQ(few.measured, 2u);
  EXPECT_NEAR(few.times[1], 20, 1e-12);
  EXPECT_THAT(few.times[2], IsNan());
  EXPECT_THAT(few.why_not, HasSubstr("three measured configurations"));
  const auto equal = correct_by_measurements(scores, states, MeasuredTimes{{0, 5}, {1, 5}, {2, 5}});
  EXPECT_EQ(equal.scores, scores);
  EXPECT_THAT(equal.why_not, HasSubstr("times are equal"));
}

TEST(MeasuredCorrection, MeasuredConfigurationsHaveTheirGeometricMeanTime) {
  const auto found = correct_by_measurements(Values{1, 2, 3, 4}, States{0, 1, 2, 3},
                                             MeasuredTimes{{0, 30}, {1, 10}, {1, 40}, {2, 10}});
  EXPECT_EQ(found.why_not, "");
  EXPECT_EQ(found.measured, 3u);
  EXPECT_NEAR(found.times[1], 20, 1e-12);
  EXPECT_THAT(found.times[3], IsNan());
  for (const std::size_t k : {0, 1, 2}) EXPECT_DOUBLE_EQ(found.scores[k], std::log(found.times[k]));
  EXPECT_EQ(found.tau_before, -1);
}

// All configurations of six operations with two states. The model sees operations 0 and 1, and not
// that a state of operation 4 doubles the time.
struct HalfBlind {
  Values scores, logs;
  States states;  // [64][6]

  HalfBlind() {
    for (int k = 0; k < 64; ++k) {
      for (int i = 0; i < 6; ++i) states.push_back(10 * i + (k >> i & 1));
      scores.push_back(0.1 * (k & 1) + 0.05 * (k >> 1 & 1));
      logs.push_back(7 + scores.back() + 0.7 * (k >> 4 & 1));
    }
  }
  // Two of five are measured, in this unit.
  MeasuredCorrection correct(double unit = 1) const {
    MeasuredTimes measured;
    for (std::size_t k = 0; k < 64; ++k) {
      if (k % 5 < 2) measured.push_back({k, unit * std::exp(logs[k])});
    }
    return correct_by_measurements(scores, states, measured);
  }
};

TEST(MeasuredCorrection, LearnsTheEffectOfAStateThatTheModelMisses) {
  HalfBlind model;
  const MeasuredCorrection found = model.correct();
  EXPECT_LT(found.tau_before, 0.5);
  EXPECT_GT(found.tau_after, 0.8);
  EXPECT_LT(found.ridge, std::numeric_limits<double>::infinity());
  double fast = -1e9, slow = 1e9;  // the last and the first of each state
  for (std::size_t k = 0; k < 64; ++k) {
    if (k >> 4 & 1)
      slow = std::min(slow, found.scores[k]);
    else
      fast = std::max(fast, found.scores[k]);
  }
  EXPECT_LT(fast, slow);
  // Neither the unit nor the numbers of states matter.
  for (std::int32_t& state : model.states) state = 1000 - 7 * state;
  const MeasuredCorrection other = model.correct(1e-9);
  for (std::size_t k = 0; k < 64; ++k)
    EXPECT_NEAR(other.scores[k] - std::log(1e-9), found.scores[k], 1e-6);
}

TEST(MeasuredCorrection, PredictsTheTimesOfAModelThatIsRight) {
  HalfBlind model;
  for (std::size_t k = 0; k < 64; ++k) model.scores[k] = 3 * model.logs[k] - 100;
  const MeasuredCorrection found = model.correct();
  EXPECT_EQ(found.tau_before, 1);
  for (std::size_t k = 0; k < 64; ++k) EXPECT_NEAR(found.scores[k], model.logs[k], 1e-9);
}

// More would take minutes: the time grows with their cube.
TEST(MeasuredCorrection, UsesAFewHundredOfManyMeasurements) {
  Values scores;
  States states;
  MeasuredTimes measured;
  for (int k = 0; k < 4000; ++k) {
    states.push_back(k % 2);
    scores.push_back(k * 37 % 4000);
    measured.push_back({static_cast<std::size_t>(k), std::exp(1e-4 * scores.back() + k % 2)});
  }
  const MeasuredCorrection found = correct_by_measurements(scores, states, measured);
  EXPECT_EQ(found.measured, 4000u);
  EXPECT_GT(found.tau_after, found.tau_before);
}

TEST(MeasuredCorrection, RefusesWhatIsNoMeasurement) {
  const auto refused = [](const States& states, const Measurement& own) {
    EXPECT_THROW(correct_by_measurements(Values{1, 2}, states, MeasuredTimes{own}), Error)
        << own.time;
  };
  for (const double time : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()})
    refused({0, 1}, {0, time});
  refused({0, 1}, {2, 1});
  refused({0, 1, 2}, {0, 1});
}

}  // namespace
}  // namespace tpudist
