#include "core/text_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace tpudist {
namespace {

TEST(TextTable, TextIsAsWideAsItsWidestCell) {
  TextTable table({"graph", right("configs", 9), right("score"), "state"});
  table.rows = {{"a", 12345, 0.123456, "ready"},
                {"a long name", 1, std::nan(""), ""},
                {"mean", "", TableCell(-2.5, "{:+.1f} %")}};
  EXPECT_EQ(table.to_text(),
            "graph          configs   score  state\n"
            "a                12345  0.1235  ready\n"
            "a long name          1       -\n"
            "mean                    -2.5 %\n");
}

TEST(TextTable, AHeaderNeedsANameAndTheFirstColumnNoGap) {
  const TextTable table{{TableColumn("", 0, 9), right("", 3, 1)},
                        {{"free", 7}, {"locks", TableCell(std::optional<double>())}}};
  EXPECT_EQ(table.to_text(2), "  free    7\n  locks   -\n");
  EXPECT_EQ((TextTable{{"a", right("b", 3)}}).to_text(), "a    b\n");
}

TEST(TextTable, CsvIsExactAndQuoted) {
  const TextTable table{{"name", "a,b"},
                        {{"<b>\"x\"</b>", 0.123456789},
                         {"line\nend", std::nan("")},
                         {"many", TableCell::count(12345)}}};
  EXPECT_EQ(table.to_csv(),
            "name,\"a,b\"\n\"<b>\"\"x\"\"</b>\",0.123456789\n\"line\nend\",\nmany,12345\n");
}

TEST(TextTable, CsvHasNoFormulas) {
  const TextTable table{{"=a"}, {{"=HYPERLINK(1)"}, {-0.5}}};
  EXPECT_EQ(table.to_csv(), "'=a\n'=HYPERLINK(1)\n-0.5\n");
}

}  // namespace
}  // namespace tpudist
