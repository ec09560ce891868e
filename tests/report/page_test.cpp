#include "report/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/xml_fault.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::XmlFault;

TEST(PageTest, IsWellFormedAndStandsAlone) {
  const std::string evil = "</style><img src=x onerror=alert(1)> \"'&";
  ReportSection section{.id = "one", .title = evil};
  section.notes = {evil};
  section.missing = {evil};
  ReportFigure figure;
  figure.heading = figure.sentence = evil;
  figure.legend = {{"s1", evil}, {"f2", evil}, {"q2", evil}, {"band1", evil}, {"limit", evil}};
  figure.panels = {{evil, [](double) { return std::string("<svg></svg>"); }}};
  figure.table = {"t", {evil}, {{evil}}};
  section.figures = {figure};
  const std::string html = page_html(evil, evil, std::vector{section});
  EXPECT_EQ(XmlFault::find(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_EQ(html, page_html(evil, evil, std::vector{section}));
}

TEST(PageTest, ATableWithoutAChartIsOpenUnlessItIsFolded) {
  ReportFigure figure;
  figure.table = {"t", {"a"}, {{"b"}}};
  ReportSection section{.id = "one", .title = "One"};
  section.figures = {figure};
  EXPECT_THAT(page_html("t", "", std::vector{section}), HasSubstr("<details open"));
  section.figures[0].folded = true;
  EXPECT_THAT(page_html("t", "", std::vector{section}), Not(HasSubstr("<details open")));
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
}  // namespace tpudist
