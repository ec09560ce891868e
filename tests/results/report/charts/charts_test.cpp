#include "results/report/charts/charts.hpp"

#include <rapidcheck/gtest.h>

#include <limits>

#include "core/means.hpp"
#include "results/report/charts/plot_area.hpp"
#include "results/report/charts/svg_canvas.hpp"
#include "tests/results/report/xml_fault.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

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
  EXPECT_THAT(map.svg(324), HasSubstr("height=\"116\""));  // 48 and 34 for each row
  for (const double width : kWidths) {
    for (const std::string& svg : {line_chart().svg(width), intervals.svg(width), map.svg(width)}) {
      EXPECT_EQ(XmlFault::find(svg), "");
      EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("nan"))));
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

TEST(AxisTest, TicksAreWholeMultiplesOfNiceSteps) {
  const Axis axis = linear_axis(0.43, 0.92, 7);
  EXPECT_THAT(axis.labels, ElementsAre("0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"));
  EXPECT_DOUBLE_EQ(axis.low, 0.4);
  EXPECT_DOUBLE_EQ(axis.high, 1.0);
  EXPECT_NEAR(axis.place(0.7), 0.5, 1e-12);
  EXPECT_THAT(linear_axis(0, 600, 7, false).labels,
              ElementsAre("0", "100", "200", "300", "400", "500", "600"));
  EXPECT_THAT(linear_axis(-1, 1, 5).labels, ElementsAre("-1.0", "-0.5", "0.0", "0.5", "1.0"));
}

TEST(AxisTest, EqualOrUnusableEndsGiveARangeAllTheSame) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [low, high] :
       {std::pair(3.0, 3.0), {0.0, 0.0}, {infinity, -infinity}, {2.0, 1.0}}) {
    const Axis axis = linear_axis(low, high, 5);
    EXPECT_LT(axis.low, axis.high);
    EXPECT_FALSE(axis.ticks.empty());
  }
  EXPECT_LT(log_axis(0, infinity, 5).low, log_axis(0, infinity, 5).high);
}

TEST(AxisTest, LogarithmicTicks) {
  const Axis axis = log_axis(1, 100, 9);
  EXPECT_THAT(axis.labels, ElementsAre("1", "2", "5", "10", "20", "50", "100"));
  EXPECT_DOUBLE_EQ(axis.place(10), 0.5);
  EXPECT_THAT(log_axis(1, 100000, 6).labels,
              ElementsAre("1", "10", "100", "1000", "10000", "100000"));
}

RC_GTEST_PROP(AxisTest, HoldsTheRangeAndKeepsToItsNumberOfTicks, (int a, int b)) {
  const double low = 1e-3 * a, high = 1e-3 * b;
  const Axis axis = linear_axis(low, high, 6);
  RC_ASSERT(axis.low <= std::min(low, high) + 1e-9 * std::abs(low) + 1e-12);
  RC_ASSERT(axis.high >= std::max(low, high) - 1e-9 * std::abs(high) - 1e-12);
  RC_ASSERT(axis.ticks.size() >= 2u);
  RC_ASSERT(axis.ticks.size() <= 7u);
}

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
}  // namespace tpudist::test
