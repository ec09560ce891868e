#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/means.hpp"
#include "results/report/charts/heat_map.hpp"
#include "results/report/charts/interval_chart.hpp"
#include "results/report/charts/line_chart.hpp"
#include "results/report/charts/scatter_chart.hpp"
#include "results/report/charts/strip_chart.hpp"
#include "tests/results/report/xml_fault.hpp"

namespace tpudist {
namespace {

using test::XmlFault;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kWidths[] = {758, 324};

// Every chart with a name that would break a page.
const std::string kName = "<script>alert(\"1\")</script> & 'x'";

LineChart line_chart() {
  LineChart chart{.label = kName, .x_name = "step", .y_name = kName};
  chart.lines = {
      {.name = kName, .colour = 1, .strong = false, .x = {1, 2, 3, 4}, .y = {1, kNone, 3, 4}},
      {.name = "mean", .colour = 2, .strong = true, .x = {1, 4}, .y = {1, 2}}};
  chart.bands = {{.colour = 1, .x = {1, 4}, .low = {0, 1}, .high = {2, 3}}};
  return chart;
}

TEST(ChartsTest, AllAreWellFormedAndEscaped) {
  const IntervalChart intervals{.label = kName,
                                .x_name = kName,
                                .bars = false,
                                .rows = {{.label = kName + kName + kName,
                                          .value = 0.5,
                                          .colour = 1,
                                          .interval = ChartInterval{0.4, 0.6},
                                          .wider = ChartInterval{0.2, 0.8},
                                          .dots = {0.4, kNone},
                                          .second = 0.55,
                                          .limit = 0.9,
                                          .limit_interval = ChartInterval{0.88, 0.92},
                                          .title = kName},
                                         {.label = "none", .value = kNone}}};
  const HeatMap map{.label = kName,
                    .row_name = kName,
                    .column_name = kName,
                    .rows = {kName, "2"},
                    .columns = {"0", kName},
                    .values = {{0.5, kNone}, {0.25, 0.75}}};
  const ScatterChart scatter{
      .label = kName, .x_name = kName, .y_name = kName, .x = {0.5}, .y = {0.25}};
  const StripChart strips{
      .label = kName,
      .x_name = kName,
      .strips = {{.label = kName, .values = {0, kNone, 1}, .marked_from = 0.5, .marked_to = 1}}};
  EXPECT_THAT(map.svg(324), HasSubstr("height=\"116\""));  // 48 and 34 for each row
  for (const double width : kWidths) {
    for (const std::string& svg : {line_chart().svg(width), intervals.svg(width), map.svg(width),
                                   scatter.svg(width), strips.svg(width)}) {
      EXPECT_EQ(XmlFault::find(svg), "");
      EXPECT_THAT(svg, Not(HasSubstr("<script")));
      EXPECT_THAT(svg, Not(HasSubstr("nan")));
    }
  }
}

TEST(ChartsTest, AnAxisHoldsLinesAndBands) {
  LineChart chart = line_chart();
  EXPECT_THAT(chart.svg(758), AllOf(HasSubstr(">0</text>"), HasSubstr(">4</text>")));
  EXPECT_THAT(chart.svg(758), Not(HasSubstr(">10</text>")));
  chart.bands[0].high[1] = 9.5;
  EXPECT_THAT(chart.svg(758), HasSubstr(">10</text>"));
}

TEST(ChartsTest, NoValuesNoChart) {
  EXPECT_EQ(LineChart().svg(300), "");
  LineChart empty;
  empty.lines = {{.name = "none", .colour = 1, .strong = false, .x = {1}, .y = {kNone}}};
  EXPECT_EQ(empty.svg(300), "");
  EXPECT_EQ(IntervalChart().svg(300), "");
  EXPECT_EQ(HeatMap().svg(300), "");
  EXPECT_EQ(ScatterChart().svg(300), "");
  EXPECT_EQ(StripChart().svg(300), "");
}

TEST(ChartsTest, AValueThatIsNotThereCutsTheLine) {
  LineChart chart{.label = "l", .x_name = "", .y_name = ""};
  chart.lines = {
      {.name = "", .colour = 1, .strong = false, .x = {0, 1, 2, 3, 4}, .y = {0, 1, kNone, 3, 4}}};
  const std::string svg = chart.svg(300);
  std::size_t lines = 0;
  for (std::size_t at = svg.find("<polyline"); at != std::string::npos;
       at = svg.find("<polyline", at + 1))
    ++lines;
  EXPECT_EQ(lines, 2u);
}

}  // namespace
}  // namespace tpudist
