#include "statistics/ranking/measurement_promise.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(NeededMeasurements, CountsTheConfigurationsBeforeTheFirstCloseOne) {
  const Values scores{3, 1, 2, 4}, times{10, 12, 11, 10.1};
  EXPECT_EQ(needed_measurements(scores, times, 0), 3);
  EXPECT_EQ(needed_measurements(scores, times, 0.02), 3);
  EXPECT_EQ(needed_measurements(scores, times, 0.1), 2);
  EXPECT_EQ(needed_measurements(scores, times, 0.2), 1);
}

TEST(NeededMeasurements, TakesSlowConfigurationsFirstWhereScoresAreTied) {
  EXPECT_EQ(needed_measurements(Values{1, 1, 1}, Values{10, 20, 30}, 0.02), 3);
  EXPECT_EQ(needed_measurements(Values{1, 1, 1}, Values{10, 20, 10}, 0.02), 2);
}

TEST(NeededMeasurements, TakesTheMeanOfRepeatedMeasurements) {
  const Values scores{1, 1, 2}, times{10, 14, 11};
  const std::vector<std::int32_t> config{7, 7, 3};
  EXPECT_EQ(needed_measurements(scores, times, 0.1), 2);
  EXPECT_EQ(needed_measurements(scores, times, 0.1, config), 1);   // 12 and 11
  EXPECT_EQ(needed_measurements(scores, times, 0.05, config), 2);
}

TEST(NeededMeasurements, IsUnknownWithoutTwoMeasuredConfigurations) {
  EXPECT_FALSE(needed_measurements(Values{1}, Values{10}, 0.02));
  EXPECT_FALSE(needed_measurements(Values{}, Values{}, 0.02));
  EXPECT_FALSE(needed_measurements(Values{1, 1}, Values{10, 11}, 0.02,
                                   std::vector<std::int32_t>{4, 4}));
  EXPECT_FALSE(needed_measurements(Values{1, 2}, Values{0, 0}, 0.02));
  EXPECT_FALSE(needed_measurements(Values{1, kNan}, Values{10, 11}, 0.02));
  EXPECT_FALSE(needed_measurements(Values{1, 2}, Values{10, kInfinity}, 0.02));
  EXPECT_THROW(needed_measurements(Values{1, 2}, Values{10}, 0.02), Error);
  EXPECT_THROW(needed_measurements(Values{1, 2}, Values{10, 11}, 0.02, std::vector{1}), Error);
}

using Families = std::vector<std::string>;
using Needs = std::vector<std::int64_t>;

TEST(MeasurementPromise, IsTheQuantileWithOneFamilyMoreThanWasSeen) {
  const Families families{"a", "b", "c", "d"};
  const Needs needs{40, 10, 30, 20};  // each weighs 1 / 5
  EXPECT_EQ(promise_measurements(families, needs, 0.2).count, 10);
  EXPECT_EQ(promise_measurements(families, needs, 0.5).count, 30);
  const MeasurementPromise all = promise_measurements(families, needs, 0.8);
  EXPECT_EQ(all.count, 40);
  EXPECT_EQ(all.families, 4);
  EXPECT_EQ(all.graphs, 4);
  EXPECT_EQ(all.least_families, 4);
  const MeasurementPromise none = promise_measurements(families, needs, 0.9);
  EXPECT_EQ(none.count, 0);
  EXPECT_EQ(none.least_families, 9);
}

// So many families are enough, and one less is not.
TEST(MeasurementPromise, NamesTheLeastNumberOfFamilies) {
  for (const double confidence : {0.5, 0.75, 0.8, 0.9, 0.95, 0.99}) {
    const int least = promise_measurements({}, {}, confidence).least_families;
    Families families;
    for (int f = 0; f < least; ++f) families.push_back(std::to_string(f));
    EXPECT_EQ(promise_measurements(families, Needs(families.size(), 3), confidence).count, 3);
    families.pop_back();
    EXPECT_EQ(promise_measurements(families, Needs(families.size(), 3), confidence).count, 0)
        << confidence;
  }
}

TEST(MeasurementPromise, GivesFamiliesEqualWeightWhateverTheirGraphs) {
  // The graphs of "a" weigh 1 / 9 each, that of "b" 1 / 3.
  const Families families{"a", "a", "a", "b"};
  const Needs needs{1, 1, 9, 2};
  EXPECT_EQ(promise_measurements(families, needs, 0.2).count, 1);
  EXPECT_EQ(promise_measurements(families, needs, 0.5).count, 2);
  EXPECT_EQ(promise_measurements(families, needs, 0.6).count, 9);
  EXPECT_EQ(promise_measurements(families, needs, 0.7).count, 0);
}

// Each family in turn as the new one: the others promise enough for the share of them asked for.
TEST(MeasurementPromise, HoldsForTheShareOfFamiliesThatItPromises) {
  for (const double confidence : {0.5, 0.75, 0.9}) {
    constexpr int kFamilies = 20;
    int held = 0;
    for (int left_out = 0; left_out < kFamilies; ++left_out) {
      Families families;
      Needs needs;
      for (int f = 0; f < kFamilies; ++f) {
        if (f == left_out) continue;
        families.push_back(std::to_string(f));
        needs.push_back(f * f);
      }
      held += promise_measurements(families, needs, confidence).count >= left_out * left_out;
    }
    EXPECT_EQ(held, confidence * kFamilies);
  }
}

TEST(MeasurementPromise, RefusesWhatIsNoConfidence) {
  for (const double confidence : {0.0, 1.0, -1.0, kNan})
    EXPECT_THROW(promise_measurements(Families{"a"}, Needs{1}, confidence), Error) << confidence;
  EXPECT_THROW(promise_measurements(Families{"a", "b"}, Needs{1}, 0.9), Error);
}

}  // namespace
}  // namespace tpudist
