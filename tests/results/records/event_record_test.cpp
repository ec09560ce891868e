#include "results/records/tensorboard_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

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
}  // namespace tpudist
