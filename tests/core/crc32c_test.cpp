#include "train/events/event_file.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>
#include <vector>

namespace tpudist {
namespace {

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
