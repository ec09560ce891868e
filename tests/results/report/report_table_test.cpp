#include "results/report/report_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/results/report/xml_fault.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;

const ReportTable kTable{"t",
                         {"name", "a,b"},
                         {{"<b>\"x\"</b>", TableCell(0.123456789)},
                          {"line\nend", TableCell(std::numeric_limits<double>::quiet_NaN())},
                          {"many", TableCell::count(12345)}}};

TEST(ReportTableTest, CsvIsExactAndQuoted) {
  EXPECT_EQ(table_csv(kTable),
            "name,\"a,b\"\n\"<b>\"\"x\"\"</b>\",0.123456789\n\"line\nend\",\nmany,12345\n");
}

TEST(ReportTableTest, CsvHasNoFormulas) {
  const ReportTable table{"t", {"=a"}, {{"=HYPERLINK(1)"}, {TableCell(-0.5)}}};
  EXPECT_EQ(table_csv(table), "'=a\n'=HYPERLINK(1)\n-0.5\n");
}

TEST(ReportTableTest, HtmlIsEscapedAndShort) {
  const std::string html = table_html(kTable);
  EXPECT_EQ(test::XmlFault::find(html), "");
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;&quot;x&quot;&lt;/b&gt;"));
  EXPECT_THAT(html, HasSubstr("<td class=\"n\">0.1235</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"n\">12,345</td>"));
}

}  // namespace
}  // namespace tpudist
