#include "core/numbers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace tpudist {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(CheckedMul, RefusesWhatDoesNotFit) {
  EXPECT_EQ(checked_mul(3, 5), 15u);
  EXPECT_EQ(checked_mul(0, kMax), 0u);
  EXPECT_EQ(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 31), std::uint64_t{1} << 63);
  EXPECT_EQ(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32), std::nullopt);
}

RC_GTEST_PROP(CheckedMul, AgreesWithDivision, (std::uint64_t a, std::uint64_t b)) {
  const auto product = checked_mul(a, b);
  const bool fits = a == 0 || b <= kMax / a;
  RC_ASSERT(product.has_value() == fits);
  if (fits) RC_ASSERT(*product == a * b);
}

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(1288490188), "1.2 GiB");
  EXPECT_EQ(format_bytes(kMax), "16.0 EiB");
}

TEST(FormatCount, GroupsDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(31091253), "31,091,253");
  EXPECT_EQ(format_count(-100), "-100");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(FormatSeconds, PicksTheUnit) {
  EXPECT_EQ(format_seconds(0), "0 ms");
  EXPECT_EQ(format_seconds(0.0124), "12 ms");
  EXPECT_EQ(format_seconds(0.9999), "1.0 s");
  EXPECT_EQ(format_seconds(3.42), "3.4 s");
  EXPECT_EQ(format_seconds(9.97), "10 s");
  EXPECT_EQ(format_seconds(59.6), "1:00");
  EXPECT_EQ(format_seconds(307), "5:07");
  EXPECT_EQ(format_seconds(7507), "2:05:07");
  EXPECT_EQ(format_seconds(3 * 86400 + 7507), "3d 02:05:07");
  EXPECT_EQ(format_seconds(-1), "?");
  EXPECT_EQ(format_seconds(std::nan("")), "?");
  EXPECT_EQ(format_seconds(INFINITY), "?");
}

}  // namespace
}  // namespace tpudist
