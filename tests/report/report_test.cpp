#include "report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/report/xml_fault.hpp"
#include "tests/results/results_case.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::PredictionsCase;
using testing::TempDir;
using testing::write_run;
using testing::write_text;
using testing::XmlFault;

// The text of a table by its name; empty where the report has none.
std::string csv_of(const Report& report, const std::string& name) {
  for (const auto& [file, text] : report_csv(report)) {
    if (file == name + ".csv") return text;
  }
  return {};
}

const ReportSection& section_of(const Report& report, const std::string& id) {
  return *std::ranges::find(report.sections, id, &ReportSection::id);
}

TEST(ReportTest, TellsARunWithPredictions) {
  const TempDir folder;
  const Report report = make_report(read_results({write_run(folder / "run", PredictionsCase())}));
  EXPECT_EQ(report.title, "xla");
  EXPECT_EQ(report.subtitle, "1 run: 1 finished \xc2\xb7 layout:xla:random");
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  // Member 0 ranks bert rightly (1); member 1 one of three pairs of resnet wrongly (1/3).
  EXPECT_THAT(csv_of(report, "folds"),
              StartsWith("seed,fold,member,graphs,mean\n5,0,0,1,1\n5,1,1,1,0.333333333333333"));
  EXPECT_THAT(csv_of(report, "loss"), HasSubstr("member 1,100,1\n"));
  EXPECT_THAT(csv_of(report, "validation"), HasSubstr("xla ensemble,50,0.75\n"));
  EXPECT_THAT(csv_of(report, "timing"), HasSubstr("xla,2,250,250,0,16.666666666666668,50\n"));
  EXPECT_THAT(csv_of(report, "hashes"),
              HasSubstr("xla,0000000000000002,0000000000000003,0000000000000004,"));
  EXPECT_THAT(csv_of(report, "scores"), HasSubstr("validation,one member,0,"));
  // resnet 5 4 6 against 10 20 30: the best of one is 20.
  EXPECT_THAT(csv_of(report, "slowdown-out-of-fold"), HasSubstr("resnet,1,100,0,0,0,0,0,0\n"));
}

TEST(ReportTest, TheSameInputGivesTheSameBytes) {
  const TempDir folder;
  write_run(folder / "run", PredictionsCase());
  const auto html = [&] { return report_html(make_report(read_results({folder / "run"}))); };
  EXPECT_EQ(html(), html());
}

TEST(ReportTest, ARunWithoutAnythingSaysWhatIsMissingAndWhichKeyGivesIt) {
  const TempDir folder;
  write_text(folder / "run" / "config.yaml", testing::config_text(1, 0, 2));
  const Report report = make_report(read_results({folder / "run"}));
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  for (const std::string id :
       {"curves", "graphs", "folds", "variance", "sizes", "ranks", "slowdown", "timing"}) {
    const ReportSection& section = section_of(report, id);
    EXPECT_TRUE(section.figures.empty()) << id;
    ASSERT_FALSE(section.missing.empty()) << id;
  }
  EXPECT_THAT(section_of(report, "ranks").missing.front(), HasSubstr("predictions.rows"));
  EXPECT_THAT(section_of(report, "curves").missing.back(), HasSubstr("train.evaluate_every"));
  EXPECT_THAT(section_of(report, "summary").missing.front(), HasSubstr("have not finished"));
}

TEST(ReportTest, ADamagedRunIsToldWithItsFaults) {
  const TempDir folder;
  write_run(folder / "run", PredictionsCase());
  write_text(folder / "run" / "predictions.h5", "nothing");
  write_text(folder / "run" / "metrics.jsonl",
             std::string("\xff{\n") + testing::kMetrics + "{\"kind");
  const Report report = make_report(read_results({folder / "run"}));
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  EXPECT_EQ(section_of(report, "summary").missing.size(), 3u);  // both faults, and no scores
  EXPECT_FALSE(section_of(report, "curves").figures.empty());
}

TEST(ReportTest, NamesWithMarkupAreText) {
  const TempDir folder;
  PredictionsCase predictions;
  predictions.header.graphs[2].name = "<script>alert(1)</script>";
  predictions.graphs[2].scores[1] = {3, 1, 2};
  write_run(folder / "<b>", predictions);
  write_text(folder / "<b>" / "config.yaml", testing::config_text(5, 0, 3, "'\"><img src=x>'"));
  const std::string html = report_html(make_report(read_results({folder / "<b>"})));
  EXPECT_EQ(XmlFault::find(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
}

TEST(ReportTest, RunsOfOtherCollectionsStandBesideEachOther) {
  const TempDir folder;
  PredictionsCase tile("tile:xla");
  write_run(folder / "a", PredictionsCase());
  write_run(folder / "b", tile);
  write_text(folder / "b" / "config.yaml",
             "name: tile\ndata: {collection: 'tile:xla'}\ntrain: {steps: 100}\n");
  const Report report = make_report(read_results({folder / "a", folder / "b"}));
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  EXPECT_THAT(csv_of(report, "folds-1"), HasSubstr("5,0,0,1,1\n"));
  EXPECT_THAT(csv_of(report, "folds-2"), HasSubstr("seed,fold"));
}

}  // namespace
}  // namespace tpudist
