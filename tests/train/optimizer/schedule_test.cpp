#include "train/optimizer/optimizer.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;

ScheduleConfig read_schedule(std::string_view yaml) {
  ConfigDocument document = ConfigDocument::parse(yaml, "test.yaml");
  const ScheduleConfig config = ScheduleConfig::read(document.root().child("schedule"));
  document.finish();
  return config;
}

std::string schedule_mistake(std::string_view yaml) {
  return test::message_of<ConfigError>([&] { read_schedule(yaml); });
}

TEST(Schedule, ConstantByDefault) {
  const ScheduleConfig constant = read_schedule("{}");
  EXPECT_EQ(constant(0, 100), 1);
  EXPECT_EQ(constant(99, 100), 1);
}

TEST(Schedule, MultistepFallsAtItsShares) {
  const ScheduleConfig multistep =
      read_schedule("schedule: {name: multistep, at: [0.6, 0.7, 0.8, 0.9], factor: 0.1}");
  EXPECT_EQ(multistep(239'999, 400'000), 1);
  EXPECT_DOUBLE_EQ(multistep(240'000, 400'000), 0.1);
  EXPECT_DOUBLE_EQ(multistep(279'999, 400'000), 0.1);
  EXPECT_DOUBLE_EQ(multistep(280'000, 400'000), 0.01);
  EXPECT_DOUBLE_EQ(multistep(399'999, 400'000), 1e-4);
}

TEST(Schedule, SharesAreRoundedToWholeSteps) {
  const ScheduleConfig multistep =
      read_schedule("schedule: {name: multistep, at: [0.07], factor: 0.5}");
  EXPECT_EQ(multistep(6, 100), 1);  // 0.07 * 100 is a little above 7 in binary
  EXPECT_EQ(multistep(7, 100), 0.5);
}

TEST(Schedule, WarmUpRisesToOne) {
  const ScheduleConfig warm = read_schedule("schedule: {warmup: 0.04}");
  EXPECT_EQ(warm(0, 100), 0.25);
  EXPECT_EQ(warm(1, 100), 0.5);
  EXPECT_EQ(warm(3, 100), 1);
  EXPECT_EQ(warm(4, 100), 1);
}

TEST(Schedule, CosineFallsFromTheWarmUpToItsFloor) {
  const ScheduleConfig cosine = read_schedule("schedule: {name: cosine, warmup: 0.2, floor: 0.1}");
  EXPECT_DOUBLE_EQ(cosine(0, 10), 0.5);
  EXPECT_DOUBLE_EQ(cosine(2, 10), 1);
  EXPECT_DOUBLE_EQ(cosine(6, 10), 0.55);
  EXPECT_DOUBLE_EQ(cosine(4, 10), 0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(cosine(10, 10), 0.1);
  for (int step = 3; step < 10; ++step) EXPECT_LT(cosine(step, 10), cosine(step - 1, 10));
}

TEST(Schedule, CosineBeginsAnewInEachCycle) {
  const ScheduleConfig cosine =
      read_schedule("schedule: {name: cosine, warmup: 0.2, floor: 0.1, cycles: 2}");
  EXPECT_DOUBLE_EQ(cosine(0, 10), 0.5);
  EXPECT_DOUBLE_EQ(cosine(2, 10), 1);
  EXPECT_DOUBLE_EQ(cosine(4, 10), 0.55);
  EXPECT_DOUBLE_EQ(cosine(6, 10), 1);
  EXPECT_DOUBLE_EQ(cosine(8, 10), 0.55);
  EXPECT_DOUBLE_EQ(cosine(10, 10), 0.1);
}

TEST(Schedule, EveryCycleBeginsAtTheTop) {
  const ScheduleConfig cosine = read_schedule("schedule: {name: cosine, cycles: 49}");
  for (int cycle = 0; cycle < 49; ++cycle) EXPECT_EQ(cosine(3 * cycle, 147), 1) << cycle;
}

// tests/golden/schedule.py
TEST(Schedule, CosineWithWarmUpEqualsThatOfTorch) {
  std::istringstream golden(
      "0.166666666666667 0.333333333333333 0.5 0.666666666666667 0.833333333333333 1 1 "
      "0.997973733740141 0.991912222349853 0.981867180507089 0.967924308967069 "
      "0.950202563393655 0.928853139471567 0.904058182958114 0.876029235679813 "
      "0.845005430732115 0.811251452280147 0.775055277366744 0.736725718993856 "
      "0.696589791438898 0.654989920284239 0.612281020962871 0.568827470745068 0.525 "
      "0.481172529254932 0.437718979037129 0.395010079715761 0.353410208561102 "
      "0.313274281006145 0.274944722633256 0.238748547719853 0.204994569267885 "
      "0.173970764320187 0.145941817041886 0.121146860528433 0.0997974366063455 "
      "0.0820756910329311 0.068132819492911 0.0580877776501467 0.0520262662598586");
  const ScheduleConfig cosine =
      read_schedule("schedule: {name: cosine, warmup: 0.15, floor: 0.05}");
  for (int step = 0; step < 40; ++step) {
    double expected = -1;
    golden >> expected;
    EXPECT_NEAR(cosine(step, 40), expected, 1e-13) << step;
  }
}

TEST(Schedule, NamesMistakes) {
  EXPECT_THAT(schedule_mistake("schedule: {name: multistep}"), HasSubstr("at"));
  EXPECT_THAT(schedule_mistake("schedule: {name: multistep, at: [0.5, 0.5]}"), HasSubstr("rising"));
  EXPECT_THAT(schedule_mistake("schedule: {name: multistep, at: [0.5, 1]}"), HasSubstr("below 1"));
  EXPECT_THAT(schedule_mistake("schedule: {warmup: 1}"), HasSubstr("below 1"));
  EXPECT_THAT(schedule_mistake("schedule: {name: cosine, cycles: 0}"), HasSubstr("cycles"));
  EXPECT_THAT(schedule_mistake("schedule: {name: cosin}"), HasSubstr("cosine"));
  EXPECT_THAT(schedule_mistake("schedule: {name: constant, at: [0.5]}"), HasSubstr("test.yaml:1:"));
}

}  // namespace
}  // namespace tpudist
