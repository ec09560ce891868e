#include "core/duration.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tpudist {
namespace {

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

}  // namespace
}  // namespace tpudist
