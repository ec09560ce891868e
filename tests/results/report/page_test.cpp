#include "results/report/page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/random.hpp"
#include "data/shards/entropy_filter.hpp"
#include "data/shards/shard_reader.hpp"
#include "results/report/run_times_page.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/results/report/xml_fault.hpp"
#include "tests/support/converted.hpp"
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

constexpr std::size_t kFirstDimension = 21, kColumns = 18;

// Nodes 1 and 3 are configurable. The two largest dimensions of node 1 are 1 and 2, that of node 3
// is 0.
NpzFixture graph_of(std::size_t rows) {
  NpzFixture f = NpzFixture::layout();
  std::ranges::fill(f.node_feat, 0.0f);
  f.node_feat[kNodeFeatures + kFirstDimension] = 4;
  f.node_feat[kNodeFeatures + kFirstDimension + 1] = 8;
  f.node_feat[kNodeFeatures + kFirstDimension + 2] = 8;
  f.node_feat[3 * kNodeFeatures + kFirstDimension] = 16;
  f.c = static_cast<std::int64_t>(rows);
  f.features.assign(rows * 2 * kColumns, -1.0f);
  f.runtime.assign(rows, 1'000'000);
  return f;
}

class RunTimesPageTest : public FolderTest {
 protected:
  void add(const NpzFixture& fixture, const std::string& split, const std::string& name) const {
    fixture.write(folder_ / "npz" / kCollection.folder() / split / (name + ".npz"),
                  {.deflate_level = 1});
  }

  std::string page() const {
    const std::filesystem::path shards = convert_npz(folder_.path());
    ThreadPool pool(1);
    return run_times_html(shards,
                          std::vector{check_collection(shards, kCollection, std::nullopt, pool)});
  }

  static inline const Collection kCollection = Collection::parse("layout:own:random");
};

// The dots of the first path with this class.
std::ptrdiff_t dots_of(const std::string& page, const std::string& style) {
  const std::size_t path = page.find("class=\"" + style + "\" d=\"");
  if (path == std::string::npos) return -1;
  return std::ranges::count(page.substr(path, page.find("/>", path) - path), 'M');
}

TEST_F(RunTimesPageTest, MarksEveryRowThatTheFilterRemoves) {
  NpzFixture fixture = graph_of(5000);
  CounterRng random(1);
  for (std::size_t i = 0; i < 5000; ++i) {
    fixture.runtime[i] += static_cast<std::int64_t>(random.below(1'000'000));
    if (2000 <= i && i < 3500) fixture.runtime[i] = 1'500'000;
    fixture.features[i * 2 * kColumns] = static_cast<float>(i % 3);
  }
  add(fixture, "train", "still<&>");
  NpzFixture hidden = graph_of(300);
  std::ranges::fill(hidden.runtime, 0);
  add(hidden, "test", "unmeasured");
  const std::string html = page();
  EXPECT_EQ(XmlFault::find(html), "");
  const std::vector<std::int64_t> times(fixture.runtime.begin(), fixture.runtime.end());
  const std::ptrdiff_t filtered = std::ranges::count(kept_by_entropy(times, 0.3), false);
  ASSERT_GT(filtered, 1400);
  ASSERT_LT(filtered, 2500);
  EXPECT_THAT(html, HasSubstr("2000 of " + std::to_string(5000 - filtered) + " kept rows, " +
                              std::to_string(filtered) + " of " + std::to_string(filtered)));
  EXPECT_EQ(dots_of(html, "dots s1"), 2000);
  EXPECT_EQ(dots_of(html, "dots s2"), filtered);
  EXPECT_THAT(html, AllOf(HasSubstr("class=\"band f2\""), HasSubstr("1 of 1 graph"),
                          HasSubstr("Suspect: "), HasSubstr("Violation ratio of the outputs"),
                          HasSubstr("inspect --suspects.</p></footer>"),
                          Not(HasSubstr("unmeasured")), Not(HasSubstr(">nan"))));
}

TEST_F(RunTimesPageTest, SaysWhatCannotBeDrawn) {
  NpzFixture fixture = graph_of(300);
  std::ranges::fill(fixture.node_feat, 0.0f);
  add(fixture, "train", "equal");
  const std::string html = page();
  EXPECT_EQ(XmlFault::find(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("0 of 0 kept rows, 300 of 300 filtered ones"),
                          HasSubstr("No violation ratio")));
}

TEST_F(RunTimesPageTest, WithoutRunTimesThereIsNothingToDraw) {
  NpzFixture fixture = graph_of(300);
  std::ranges::fill(fixture.runtime, 0);
  add(fixture, "test", "hidden");
  EXPECT_THAT(page(), HasSubstr("No graph has run times."));
}

// The lanes of both nodes in four configurations, which repeat (coded) or do not.
TEST_F(RunTimesPageTest, ViolationRatiosAreThoseOfTheReadout) {
  for (const bool repeat : {true, false}) {
    NpzFixture fixture = graph_of(repeat ? 40 : 4);
    const float lanes[4][2] = {{1, 0}, {0, 0}, {5, 3}, {2, -1}};
    for (std::size_t i = 0; i < static_cast<std::size_t>(fixture.c); ++i) {
      fixture.features[i * 2 * kColumns] = lanes[i % 4][0];
      fixture.features[i * 2 * kColumns + kColumns] = lanes[i % 4][1];
    }
    add(fixture, "train", repeat ? "repeat" : "few");
  }
  const auto entries = list_graphs(convert_npz(folder_.path()), kCollection);
  for (const GraphEntry& entry : entries) {
    std::vector<double> ratios = output_violations(entry);
    ASSERT_EQ(std::ssize(ratios), entry.configs);
    ratios.resize(4);
    EXPECT_THAT(ratios, ElementsAre(0, 0.5, 1, 0)) << entry.name << " coded " << entry.coded;
  }
  GraphEntry other = entries.front();
  other.schema.layout_columns = {};
  EXPECT_THAT(output_violations(other), IsEmpty());
}

}  // namespace
}  // namespace tpudist::test
