#include "core/numbers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/means.hpp"

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

TEST(Duration, ReadsUnitsAndClocks) {
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("1.5h"), 5400);
  EXPECT_EQ(parse_duration("7h30m"), 27000);
  EXPECT_EQ(parse_duration("2d"), 172800);
  EXPECT_EQ(parse_duration("1d2h3m4.5s"), 93784.5);
  EXPECT_EQ(parse_duration(" 45s "), 45);
  EXPECT_EQ(parse_duration("1:30:00"), 5400);
  EXPECT_EQ(parse_duration("2-12:00:30"), 216030);
}

TEST(Duration, RefusesAllElse) {
  for (const char* text :
       {"",    " ",    "h",      "-1",      "-1h",     "1h-30m", "30m1h",   "1h1h",
        "1x",  "1h30", "90:00",  "1:60:00", "1:0:0:0", "1:-1:0", "inf",     "nan",
        "1e3", "2e9",  "20000d", "1:2:3s",  "1h 30m",  "+5",     "-1:00:00"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Duration, WritesWhatItReads) {
  EXPECT_EQ(format_duration(27000), "7h30m");
  EXPECT_EQ(format_duration(45), "45s");
  EXPECT_EQ(format_duration(0), "0s");
  EXPECT_EQ(format_duration(172800), "2d");
  EXPECT_EQ(format_duration(1.5), "1.5s");
}

RC_GTEST_PROP(Duration, ComesBack, ()) {
  const int seconds = *rc::gen::inRange(0, 1'000'000'000);
  RC_ASSERT(parse_duration(format_duration(seconds)) == std::optional<double>(seconds));
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Means, OfAllValues) {
  EXPECT_EQ(mean(std::vector{1.0, 2.0, 6.0}), 3.0);
  EXPECT_TRUE(std::isnan(mean(std::vector{1.0, kNaN})));
  EXPECT_TRUE(std::isnan(mean({})));
}

TEST(Means, OfKnownValues) {
  EXPECT_EQ(mean_of_known(std::vector{kNaN, 1.0, kNaN, 4.0}), 2.5);
  EXPECT_TRUE(std::isnan(mean_of_known(std::vector{kNaN, kNaN})));
  EXPECT_TRUE(std::isnan(mean_of_known({})));
}

TEST(Means, SquaresAround) {
  EXPECT_EQ(squares_around(std::vector{1.0, 4.0}, 3.0), 5.0);
  EXPECT_EQ(squares_around({}, 3.0), 0.0);
}

TEST(Means, Median) {
  const std::vector odd{5.0, -1.0, 2.0}, even{4.0, 1.0, 3.0, 10.0};
  EXPECT_EQ(median(odd), 2.0);
  EXPECT_EQ(median(even), 3.5);
}

// As numpy.quantile.
TEST(Means, Quantile) {
  const std::vector values{5.0, 1.0, 3.0, 10.0};
  EXPECT_EQ(quantile(values, 0), 1.0);
  EXPECT_EQ(quantile(values, 0.25), 2.5);
  EXPECT_EQ(quantile(values, 1), 10.0);
  EXPECT_EQ(quantile({7.0}, 0.3), 7.0);
}

TEST(Means, Ranks) {
  EXPECT_EQ(mean_ranks(std::vector{5.0, 1.0, 5.0, 10.0}), (std::vector{2.5, 1.0, 2.5, 4.0}));
}

}  // namespace
}  // namespace tpudist
