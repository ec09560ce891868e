#include "results/report/page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "tests/results/report/xml_fault.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

TEST(PageTest, IsWellFormedAndStandsAlone) {
  const std::string evil = "</style><img src=x onerror=alert(1)> \"'&";
  ReportSection section{.id = "one", .title = evil};
  section.notes = {evil};
  section.missing = {evil};
  section.headline = {evil, evil};
  section.gist = evil;
  ReportFigure figure;
  figure.heading = figure.sentence = evil;
  figure.legend = {{"s1", evil}, {"f2", evil}, {"q2", evil}, {"band1", evil}, {"limit", evil}};
  figure.panels = {{evil, [](double) { return std::string("<svg></svg>"); }}};
  figure.table = {{evil}, {{evil}}, "t"};
  section.figures = {figure};
  const std::string html =
      page_html(evil, evil, std::vector{ReportFact{evil, evil}}, std::vector{section});
  EXPECT_EQ(XmlFault::find(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html.substr(0, html.find("<footer>")), Not(HasSubstr("<script")));
  EXPECT_THAT(html, AllOf(Not(HasSubstr("url(")), HasSubstr("prefers-color-scheme: dark")));
  EXPECT_EQ(html, page_html(evil, evil, std::vector{ReportFact{evil, evil}}, std::vector{section}));
}

TEST(PageTest, AFoldedSectionShowsItsGist) {
  ReportSection section{.id = "one", .title = "One"};
  section.folded = true;
  section.gist = "in short";
  const std::string html = page_html("t", "", {}, std::vector{section});
  EXPECT_EQ(XmlFault::find(html), "");
  EXPECT_THAT(html,
              HasSubstr("<summary><h2>One</h2> <span>in short</span></summary>\n<div id=\"one\">"));
}

// What the page's security policy lets run.
std::string sha256_in_base64(std::string_view text) {
  const TempDir folder;
  const std::string file = (folder / "script").string();
  std::ofstream(file) << text;
  FILE* pipe =
      popen(("sha256sum " + file + " | cut -c1-64 | tr a-f A-F | basenc --base16 -d | base64 -w0")
                .c_str(),
            "r");
  std::array<char, 128> buffer{};
  const std::size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe);
  pclose(pipe);
  return std::string(buffer.data(), bytes);
}

TEST(PageTest, ItsPolicyLetsItsOwnScriptRunAndNoOther) {
  const std::string html = page_html("t", "", {}, {});
  EXPECT_EQ(page_script_hash(), sha256_in_base64(page_script()));
  EXPECT_THAT(html, AllOf(HasSubstr("script-src 'sha256-" + std::string(page_script_hash()) + "'"),
                          HasSubstr("<script>" + std::string(page_script()) + "</script>")));
}

TEST(PageTest, CellsAreEscapedAndNumbersShort) {
  const TextTable table{{"name", "a,b"},
                        {{"<b>\"x\"</b>", 0.123456789},
                         {"line\nend", std::nan("")},
                         {"many", TableCell::count(12345)}}};
  const std::string html = table_html(table);
  EXPECT_EQ(XmlFault::find(html), "");
  EXPECT_THAT(
      html,
      AllOf(HasSubstr("&lt;b&gt;&quot;x&quot;&lt;/b&gt;"), HasSubstr("<td class=\"n\">0.1235</td>"),
            HasSubstr("<td class=\"n\"></td>"), HasSubstr("<td class=\"n\">12,345</td>")));
}

TEST(PageTest, ATableWithoutAChartIsOpenUnlessItIsFolded) {
  ReportFigure figure;
  figure.table = {{"a"}, {{"b"}}, "t"};
  ReportSection section{.id = "one", .title = "One"};
  section.figures = {figure};
  EXPECT_THAT(page_html("t", "", {}, std::vector{section}), HasSubstr("<details open"));
  section.figures[0].folded = true;
  EXPECT_THAT(page_html("t", "", {}, std::vector{section}), Not(HasSubstr("<details open")));
}

TEST(PageTest, TheCheckerFindsFaults) {
  EXPECT_NE(XmlFault::find("<a><b></a></b>"), "");
  EXPECT_NE(XmlFault::find("<a x=1></a>"), "");
  EXPECT_NE(XmlFault::find("<a>&nbsp;</a>"), "");
  EXPECT_NE(XmlFault::find("<a>"), "");
  EXPECT_NE(XmlFault::find("<a x=\"1\" x=\"2\"/>"), "");
  EXPECT_EQ(XmlFault::find("<a x=\"1\"><b/>&amp;</a>"), "");
}

}  // namespace
}  // namespace tpudist::test
