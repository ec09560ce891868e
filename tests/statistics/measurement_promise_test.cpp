#include "statistics/ranking/measurement_promise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;
using Configs = std::vector<std::int32_t>;
using Families = std::vector<std::string>;
using Needs = std::vector<std::int64_t>;

TEST(NeededMeasurements, CountsTheConfigurationsUpToTheFirstCloseOne) {
  const Values scores{3, 1, 2, 4}, times{10, 12, 11, 10.1};
  EXPECT_EQ(needed_measurements(scores, times, 0), 3);
  EXPECT_EQ(needed_measurements(scores, times, 0.1), 2);
  EXPECT_EQ(needed_measurements(scores, times, 0.2), 1);
  // Of tied ones the slow ones come first.
  EXPECT_EQ(needed_measurements(Values{1, 1, 1}, Values{10, 20, 30}, 0.02), 3);
  // The means of repeated measurements are 12 and 11.
  const Values repeated{10, 14, 11};
  EXPECT_EQ(needed_measurements(Values{1, 1, 2}, repeated, 0.1), 2);
  EXPECT_EQ(needed_measurements(Values{1, 1, 2}, repeated, 0.1, Configs{7, 7, 3}), 1);
}

TEST(NeededMeasurements, IsUnknownWithoutTwoMeasuredConfigurations) {
  EXPECT_FALSE(needed_measurements(Values{}, Values{}, 0.02));
  EXPECT_FALSE(needed_measurements(Values{1, 1}, Values{10, 11}, 0.02, Configs{4, 4}));
  EXPECT_FALSE(needed_measurements(Values{1, 2}, Values{0, 0}, 0.02));
  EXPECT_FALSE(needed_measurements(Values{1, NAN}, Values{10, 11}, 0.02));
  EXPECT_FALSE(needed_measurements(Values{1, 2}, Values{10, INFINITY}, 0.02));
  EXPECT_THROW(needed_measurements(Values{1, 2}, Values{10}, 0.02), Error);
  EXPECT_THROW(needed_measurements(Values{1, 2}, Values{10, 11}, 0.02, Configs{1}), Error);
}

TEST(MeasurementPromise, IsTheQuantileWithOneFamilyMoreThanWasSeen) {
  const Families families{"a", "b", "c", "d"};
  const Needs needs{40, 10, 30, 20};  // each weighs 1 / 5
  EXPECT_EQ(promise_measurements(families, needs, 0.2).count, 10);
  EXPECT_EQ(promise_measurements(families, needs, 0.5).count, 30);
  EXPECT_EQ(promise_measurements(families, needs, 0.8).count, 40);
  const MeasurementPromise none = promise_measurements(families, needs, 0.9);
  EXPECT_EQ(none.count, 0);
  EXPECT_EQ(none.families, 4);
  // Three graphs of one family weigh 1 / 9 each, that of the other 1 / 3.
  const Families two{"a", "a", "a", "b"};
  const Needs uneven{1, 1, 9, 2};
  EXPECT_EQ(promise_measurements(two, uneven, 0.2).count, 1);
  EXPECT_EQ(promise_measurements(two, uneven, 0.5).count, 2);
  EXPECT_EQ(promise_measurements(two, uneven, 0.6).count, 9);
  EXPECT_EQ(promise_measurements(two, uneven, 0.7).count, 0);
}

TEST(MeasurementPromise, NamesTheLeastNumberOfFamilies) {
  for (const double confidence : {0.5, 0.75, 0.8, 0.9, 0.95, 0.99}) {
    const int least = promise_measurements({}, {}, confidence).least_families;
    Families families;
    for (int f = 0; f < least; ++f) families.push_back(std::to_string(f));
    EXPECT_EQ(promise_measurements(families, Needs(families.size(), 3), confidence).count, 3);
    families.pop_back();
    EXPECT_EQ(promise_measurements(families, Needs(families.size(), 3), confidence).count, 0);
  }
}

// Each family in turn as the new one: the others promise enough for the share of them asked for.
TEST(MeasurementPromise, HoldsForTheShareOfFamiliesThatItPromises) {
  for (const double confidence : {0.5, 0.75, 0.9}) {
    int held = 0;
    for (int left_out = 0; left_out < 20; ++left_out) {
      Families families;
      Needs needs;
      for (int f = 0; f < 20; ++f) {
        if (f == left_out) continue;
        families.push_back(std::to_string(f));
        needs.push_back(1 + f * f);
      }
      held += promise_measurements(families, needs, confidence).count >= 1 + left_out * left_out;
    }
    EXPECT_EQ(held, confidence * 20);
  }
}

TEST(MeasurementPromise, RefusesWhatIsNoConfidence) {
  for (const double confidence : {0.0, 1.0, -1.0, double{NAN}})
    EXPECT_THROW(promise_measurements(Families{"a"}, Needs{1}, confidence), Error) << confidence;
  EXPECT_THROW(promise_measurements(Families{"a", "b"}, Needs{1}, 0.9), Error);
}

}  // namespace
}  // namespace tpudist
