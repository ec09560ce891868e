#include "results/records/tensorboard_file.hpp"

#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

using nlohmann::json;
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

class TensorBoardFile : public FolderTest {
 protected:
  const std::filesystem::path file_ = folder_ / "events";
};

TEST_F(TensorBoardFile, BeginsWithItsVersionAndGrowsByARecordForEachLine) {
  append_events(file_, step_record(10));
  append_events(file_, step_record(20));
  EXPECT_THAT(steps_in(file_), ElementsAre(0, 10, 20));
  const std::string bytes = read_text_file(file_);
  EXPECT_NE(whole_records(bytes).front().event.find("brain.Event:2"), std::string_view::npos);
}

TEST_F(TensorBoardFile, IsRewoundToAStepAndGoesOnWithoutDuplicates) {
  for (const std::int64_t step : {10, 20, 30}) append_events(file_, step_record(step));
  rewind_events(file_, 20);
  EXPECT_THAT(steps_in(file_), ElementsAre(0, 10, 20));
  append_events(file_, step_record(30));
  EXPECT_THAT(steps_in(file_), ElementsAre(0, 10, 20, 30));
}

TEST_F(TensorBoardFile, ATornRecordIsDroppedWhereARunGoesOn) {
  append_events(file_, step_record(10));
  append_events(file_, step_record(20));
  const std::string whole = read_text_file(file_);
  std::filesystem::resize_file(file_, whole.size() - 3);
  rewind_events(file_, 100);
  append_events(file_, step_record(20));
  EXPECT_THAT(steps_in(file_), ElementsAre(0, 10, 20));
}

TEST_F(TensorBoardFile, AFileOfNoWholeRecordBeginsAnew) {
  write_file_atomically(file_, "torn");
  rewind_events(file_, 5);
  EXPECT_THAT(steps_in(file_), ElementsAre(0));
  rewind_events(folder_ / "none", 5);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

TEST_F(TensorBoardFile, WhatCannotBeWrittenIsAnError) {
  EXPECT_THROW(append_events(folder_ / "none" / "events", step_record(1)), IoError);
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// Printed by tests/golden/tensorboard_events.py with the tensorboard package.
const std::string kVersion =
    from_hex("1800000000000000a37f4b220900000000004a93401a0d627261696e2e4576656e743a3265b8d3fb");
const std::string kScalars = from_hex(
    "31000000000000009d8383e90900000000004a934010ac022a230a140a0d6c6f73732f6d656d6265725f3015000080"
    "3e0a0b0a0472617465156f1283bac212337a");

const std::string kSettings = from_hex(
    "80000000000000002a5b60ec0900000000004a934010ac022a720a700a1c5f68706172616d735f2f73657373696f6e"
    "5f73746172745f696e666f4a500a4e0a0768706172616d7312431a410a100a0a646174612e6361636865120220010a"
    "120a046c6f7373120a1a086c6973745f6d6c650a190a0c6f7074696d697a65722e6c72120911fca9f1d24d62503f81"
    "15d8f7");

const std::vector<Scalar> kTwoScalars{{"loss/member_0", 0.25}, {"rate", -1e-3}};

TEST(EventRecord, HasTheBytesOfTensorBoard) {
  EXPECT_EQ(version_record(1234.5), kVersion);
  EXPECT_EQ(scalar_record(1234.5, 300, kTwoScalars), kScalars);
  EXPECT_EQ(
      settings_record(1234.5, 300,
                      {{"data.cache", "true"}, {"loss", "list_mle"}, {"optimizer.lr", "0.001"}}),
      kSettings);
}

TEST(EventRecord, MaskedCrcIsThatOfTheFormat) {
  // TensorFlow: mask(crc) = ((crc >> 15) | (crc << 17)) + 0xa282ead8; crc32c("123456789") =
  // 0xe3069283.
  const std::uint32_t crc = 0xe3069283u;
  EXPECT_EQ(masked_crc32c(std::as_bytes(std::span(std::string_view("123456789")))),
            ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

TEST(EventRecord, RecordsAreFoundWithTheirSteps) {
  const std::string large = scalar_record(2e9, std::int64_t{1} << 40, kTwoScalars);
  const std::string file = kVersion + kScalars + large;
  const auto records = whole_records(file);
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(records[0].step, 0);
  EXPECT_EQ(records[1].step, 300);
  EXPECT_EQ(records[1].record, kScalars);
  EXPECT_EQ(records[2].step, std::int64_t{1} << 40);
  EXPECT_EQ(records[2].record, large);
}

TEST(EventRecord, AFileThatWasCutAnywhereKeepsItsWholeRecords) {
  const std::string file = kVersion + kScalars + kScalars;
  for (std::size_t size = 0; size <= file.size(); ++size) {
    const std::size_t whole = size < kVersion.size()                         ? 0
                              : size < kVersion.size() + kScalars.size()     ? 1
                              : size < kVersion.size() + 2 * kScalars.size() ? 2
                                                                             : 3;
    EXPECT_THAT(whole_records(std::string_view(file).substr(0, size)), SizeIs(whole)) << size;
  }
}

TEST(EventRecord, ADamagedByteEndsTheWholeRecords) {
  for (std::size_t at = 0; at < kScalars.size(); ++at) {
    std::string file = kVersion + kScalars + kVersion;
    file[kVersion.size() + at] = static_cast<char>(file[kVersion.size() + at] ^ 0x10);
    EXPECT_THAT(whole_records(file), SizeIs(1)) << at;
  }
  EXPECT_THAT(whole_records(""), IsEmpty());
  EXPECT_THAT(whole_records("no records at all, but long enough for a frame"), IsEmpty());
}

RC_GTEST_PROP(EventRecordProperty, AnyScalarsAreFoundAgain,
              (const std::vector<std::pair<std::string, double>>& values)) {
  std::vector<Scalar> scalars;
  for (const auto& [tag, value] : values) scalars.push_back({tag, value});
  const std::int64_t step = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62);
  const std::string record = scalar_record(1.5, step, scalars);
  const auto found = whole_records(record);
  RC_ASSERT(found.size() == 1u);
  RC_ASSERT(found.front().step == step);
  RC_ASSERT(found.front().record == record);
}

std::uint32_t crc_of(const std::vector<std::uint8_t>& bytes) {
  return crc32c(std::as_bytes(std::span(bytes)));
}

// The examples of RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, GivesTheKnownValues) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(std::as_bytes(std::span(std::string_view("123456789")))), 0xe3069283u);
  EXPECT_EQ(crc_of(std::vector<std::uint8_t>(32, 0)), 0x8a9136aau);
  EXPECT_EQ(crc_of(std::vector<std::uint8_t>(32, 0xff)), 0x62a8ab43u);
  std::vector<std::uint8_t> rising(32);
  std::iota(rising.begin(), rising.end(), std::uint8_t{0});
  EXPECT_EQ(crc_of(rising), 0x46dd794eu);
}

}  // namespace
}  // namespace tpudist::test
