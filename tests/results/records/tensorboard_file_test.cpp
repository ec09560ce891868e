#include "results/records/tensorboard_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using nlohmann::json;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::Pair;

json step_record(std::int64_t step) {
  return {{"kind", "step"}, {"step", step}, {"loss", {1.5, nullptr, 0.5}}, {"rate", 0.001}};
}

std::map<std::string, double> by_tag(const json& record) {
  std::map<std::string, double> values;
  for (const Scalar& scalar : scalars_of(record)) values[scalar.tag] = scalar.value;
  return values;
}

std::vector<std::int64_t> steps_in(const std::filesystem::path& file) {
  const std::string bytes = read_text_file(file);
  std::vector<std::int64_t> steps;
  std::size_t size = 0;
  for (const EventRecord& record : whole_records(bytes)) {
    steps.push_back(record.step);
    size += record.record.size();
  }
  EXPECT_EQ(size, bytes.size()) << "something is torn";
  return steps;
}

TEST(ScalarsOf, AStepAreItsNumbersByMemberAndTheirMean) {
  EXPECT_THAT(by_tag(step_record(3)),
              ElementsAre(Pair("loss/mean", 1.0), Pair("loss/member_0", 1.5),
                          Pair("loss/member_2", 0.5), Pair("rate", 0.001)));
}

TEST(ScalarsOf, MembersHaveTheirNumbersOfTheEnsemble) {
  json record = step_record(3);
  record["first_member"] = 5;
  EXPECT_THAT(by_tag(record), ElementsAre(Pair("loss/mean", 1.0), Pair("loss/member_5", 1.5),
                                          Pair("loss/member_7", 0.5), Pair("rate", 0.001)));
}

TEST(ScalarsOf, AnEvaluationComesUnderItsSplit) {
  EXPECT_THAT(
      by_tag({{"kind", "evaluation"},
              {"split", "valid"},
              {"step", 4},
              {"rows", 1000},
              {"members", {0.5, 0.6}},
              {"ensemble", 0.7},
              {"train_seconds", 9.0}}),
      ElementsAre(Pair("train_seconds", 9.0), Pair("valid/ensemble", 0.7), Pair("valid/mean", 0.55),
                  Pair("valid/member_0", 0.5), Pair("valid/member_1", 0.6)));
}

TEST(ScalarsOf, WhatIsNotFiniteIsLeftOut) {
  EXPECT_TRUE(
      by_tag({{"kind", "step"}, {"step", 1}, {"loss", {nullptr}}, {"rate", nullptr}}).empty());
}

TEST(TensorBoardFile, BeginsWithItsVersionAndGrowsByARecordForEachLine) {
  const TempDir folder;
  const auto file = folder / "events";
  append_events(file, step_record(10));
  append_events(file, step_record(20));
  EXPECT_THAT(steps_in(file), ElementsAre(0, 10, 20));
  const std::string bytes = read_text_file(file);
  EXPECT_NE(whole_records(bytes).front().event.find("brain.Event:2"), std::string_view::npos);
}

TEST(TensorBoardFile, IsRewoundToAStepAndGoesOnWithoutDuplicates) {
  const TempDir folder;
  const auto file = folder / "events";
  for (const std::int64_t step : {10, 20, 30}) append_events(file, step_record(step));
  rewind_events(file, 20);
  EXPECT_THAT(steps_in(file), ElementsAre(0, 10, 20));
  append_events(file, step_record(30));
  EXPECT_THAT(steps_in(file), ElementsAre(0, 10, 20, 30));
}

TEST(TensorBoardFile, ATornRecordIsDroppedWhereARunGoesOn) {
  const TempDir folder;
  const auto file = folder / "events";
  append_events(file, step_record(10));
  append_events(file, step_record(20));
  const std::string whole = read_text_file(file);
  std::filesystem::resize_file(file, whole.size() - 3);
  rewind_events(file, 100);
  append_events(file, step_record(20));
  EXPECT_THAT(steps_in(file), ElementsAre(0, 10, 20));
}

TEST(TensorBoardFile, AFileOfNoWholeRecordBeginsAnew) {
  const TempDir folder;
  const auto file = folder / "events";
  write_file_atomically(file, "torn");
  rewind_events(file, 5);
  EXPECT_THAT(steps_in(file), ElementsAre(0));
  rewind_events(folder / "none", 5);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(TensorBoardFile, WhatCannotBeWrittenIsAnError) {
  const TempDir folder;
  EXPECT_THROW(append_events(folder / "none" / "events", step_record(1)), IoError);
}

}  // namespace
}  // namespace tpudist
