#include "core/escape.hpp"

#include <gtest/gtest.h>

namespace tpudist {
namespace {

TEST(Printable, KeepsWhatCanBeShown) {
  const std::string shown = "a ~ \xc3\xa4 \xe2\x80\xa6 \xe6\x97\xa5 \xf0\x9f\x99\x82";
  EXPECT_EQ(printable(shown), shown);
  EXPECT_EQ(printable("a\nb\tc\r", "\n\t"), "a\nb\tc?");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ReplacesWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m\a\b\x7f"), "?[31mred?[0m???");
  EXPECT_EQ(printable({"a\0b", 3}), "a?b");
  EXPECT_EQ(printable("a\nb\r\tc"), "a?b??c");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xc2\x85"),
            "?31m?");  // C1
  for (const char* mark :
       {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaa",
        "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"})
    EXPECT_EQ(printable(mark), "?");
}

TEST(Printable, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m \xff\xfe \xc3"),
            "?31m ?? ?");
  EXPECT_EQ(printable("\xe2\x80"), "??");
  EXPECT_EQ(printable("\xc0\x9b \xed\xa0\x80"), "?? ???");
}

TEST(CsvField, IsQuotedWhereItMust) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
  EXPECT_EQ(csv_field("a\rb"), "\"a\rb\"");
}

TEST(CsvField, IsNoFormula) {
  EXPECT_EQ(csv_field("=HYPERLINK(1)"), "'=HYPERLINK(1)");
  EXPECT_EQ(csv_field("@SUM(1,2)"), "\"'@SUM(1,2)\"");
  EXPECT_EQ(csv_field("\t=1"), "'\t=1");
  EXPECT_EQ(csv_field("-1+cmd|' /C calc'!A0"), "'-1+cmd|' /C calc'!A0");
  EXPECT_EQ(csv_field("+SUM(1)"), "'+SUM(1)");
  for (const char* number : {"-0.25", "+1e-3", "-0.01 to 0.02", "-", ""})
    EXPECT_EQ(csv_field(number), number);
}

}  // namespace
}  // namespace tpudist
