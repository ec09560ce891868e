#include "train/optimizer/optimizer.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

AverageConfig read_average(std::string_view yaml) {
  ConfigDocument document = ConfigDocument::parse(yaml, "test.yaml");
  const AverageConfig config = AverageConfig::read(document.root().child("average"));
  document.finish();
  return config;
}

std::string mistake(std::string_view yaml) {
  return test::message_of<ConfigError>([&] { read_average(yaml); });
}

// The average of one weight of one member after each step.
std::vector<float> averages_of(const AverageConfig& config, const std::vector<float>& weights) {
  ThreadPool pool(1);
  WeightAverage average(config, 1, 1);
  std::vector<float> values;
  const auto steps = static_cast<std::int64_t>(weights.size());
  for (std::int64_t step = 1; step <= steps; ++step) {
    average.add(std::span(&weights[step - 1], 1), {true}, step, steps, pool);
    values.push_back(average.values()[0]);
  }
  return values;
}

TEST(WeightAverage, OfSwaIsTheMeanOfItsPoints) {
  // 2; (2 + 4) / 2; (2 + 4 + 9) / 3
  EXPECT_THAT(averages_of(read_average("average: {kind: swa, from: 0}"), {2, 4, 9}),
              ElementsAre(2, 3, FloatEq(5)));
}

TEST(WeightAverage, OfEmaWeighsItsPointsByTheirAge) {
  // 1; (1 x 0.5 + 4) / 1.5; (1 x 0.25 + 4 x 0.5 + 9) / 1.75
  EXPECT_THAT(averages_of(read_average("average: {kind: ema, decay: 0.5}"), {1, 4, 9}),
              ElementsAre(1, FloatEq(3), FloatEq(45.0f / 7)));
}

TEST(WeightAverage, TakesItsPointsFromAShareOfAllStepsOn) {
  // The last half of 8 steps, every second of them: 6 and 8.
  EXPECT_THAT(averages_of(read_average("average: {kind: swa, from: 0.5, every: 2}"),
                          {1, 2, 3, 4, 5, 6, 7, 8}),
              ElementsAre(0, 0, 0, 0, 0, 6, 6, 7));
}

// Such as statistics of the data, which training never changes.
TEST(WeightAverage, HasTheBitsOfWhatDoesNotChange) {
  for (const char* yaml : {"average: {kind: swa, from: 0}", "average: {kind: ema, decay: 0.97}"}) {
    for (const float value : averages_of(read_average(yaml), std::vector<float>(50, 0.1f)))
      EXPECT_EQ(value, 0.1f);
  }
}

TEST(WeightAverage, PassesOverMembersThatDoNotTrain) {
  ThreadPool pool(2);
  WeightAverage average(read_average("average: {kind: swa, from: 0}"), 2, 3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  average.add(std::vector<float>{1, 2, 3, 4, 5, 6}, {true, true, false}, 1, 2, pool);
  average.add(std::vector<float>{3, 6, nan, nan, 7, 8}, {true, false, false}, 2, 2, pool);
  EXPECT_THAT(average.values(), ElementsAre(2, 4, 3, 4, 0, 0));
  EXPECT_THAT(average.points(), ElementsAre(2, 1, 0));
  // A member without a point is scored with its own weights.
  EXPECT_THAT(averaged_weights(std::vector<float>{3, 6, nan, nan, 7, 8}, average.values(),
                               average.points()),
              ElementsAre(2, 4, 3, 4, 7, 8));
}

TEST(WeightAverage, HoldsNothingUnlessAskedFor) {
  ThreadPool pool(1);
  WeightAverage average(read_average("average: {}"), 2, 1);
  average.add(std::vector<float>{1, 2}, {true}, 1, 1, pool);
  EXPECT_FALSE(average.is_kept());
  EXPECT_TRUE(average.values().empty());
  EXPECT_THAT(averaged_weights(std::vector<float>{1, 2}, average.values(), average.points()),
              ElementsAre(1, 2));
}

// Blocks of 16,384 floats are shared among threads.
TEST(WeightAverage, HasTheSameBitsForAnyNumberOfThreads) {
  constexpr int kLength = 50'000;
  const auto with = [&](int threads) {
    ThreadPool pool(threads);
    WeightAverage average(read_average("average: {kind: ema, decay: 0.9}"), kLength, 2);
    std::vector<float> flat(2 * kLength);
    for (int step = 1; step <= 3; ++step) {
      for (std::size_t i = 0; i < flat.size(); ++i)
        flat[i] = static_cast<float>(step) / static_cast<float>(i + 1);
      average.add(flat, {true, true}, step, 3, pool);
    }
    return std::vector<float>(average.values().begin(), average.values().end());
  };
  EXPECT_EQ(with(1), with(3));
}

TEST(WeightAverage, RefusesWhatIsNoAverage) {
  EXPECT_THAT(mistake("average: {kind: mean}"), HasSubstr("kind"));
  EXPECT_THAT(mistake("average: {kind: ema, decay: 1}"), HasSubstr("must be below 1"));
  EXPECT_THAT(mistake("average: {kind: swa, from: 1}"), HasSubstr("share of all steps below 1"));
  EXPECT_THAT(mistake("average: {kind: swa, decay: 0.9}"), HasSubstr("decay"));  // of ema alone
  EXPECT_THAT(mistake("average: {decay: 0.9}"), HasSubstr("decay"));
  EXPECT_THAT(mistake("average: {kind: swa, every: 0}"), HasSubstr("every"));
}

}  // namespace
}  // namespace tpudist
