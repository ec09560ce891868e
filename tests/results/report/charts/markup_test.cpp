#include "results/report/charts/markup.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tpudist {
namespace {

TEST(MarkupTest, EscapesWhatMarkupMeans) {
  EXPECT_EQ(escaped("a <b> & \"c\" 'd'"), "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escaped("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82");
}

TEST(MarkupTest, ReplacesWhatCannotStandInADocument) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(escaped(std::string_view("a\0b\x1b", 4)), "a" + mark + "b" + mark);
  EXPECT_EQ(escaped("\xff\xc3"), mark + mark);
  EXPECT_EQ(escaped("\xed\xa0\x80"), mark + mark + mark);  // a surrogate
  EXPECT_EQ(escaped("\xef\xbf\xbf"), mark);
  EXPECT_EQ(escaped("a\xe2\x80\xae"
                    "b\xc2\x85"),
            "a" + mark + "b" + mark);  // direction, C1
  EXPECT_EQ(escaped("tab\tline\n"), "tab\tline\n");
}

TEST(MarkupTest, PixelsHaveOneDecimalAtMost) {
  EXPECT_EQ(pixels(12), "12");
  EXPECT_EQ(pixels(12.26), "12.3");
  EXPECT_EQ(pixels(-0.01), "0");
  EXPECT_EQ(pixels(std::numeric_limits<double>::quiet_NaN()), "0");
}

TEST(MarkupTest, ShortensByCharacters) {
  EXPECT_EQ(shortened("abcd", 4), "abcd");
  EXPECT_EQ(shortened("abcde", 4), "abc\xe2\x80\xa6");
  EXPECT_EQ(shortened("\xc3\xbc\xc3\xbc\xc3\xbc", 3), "\xc3\xbc\xc3\xbc\xc3\xbc");
  EXPECT_EQ(shortened("\xc3\xbc\xc3\xbc\xc3\xbc", 2), "\xc3\xbc\xe2\x80\xa6");
}

}  // namespace
}  // namespace tpudist
