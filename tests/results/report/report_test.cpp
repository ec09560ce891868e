#include "results/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/folder_lock.hpp"
#include "tests/results/report/xml_fault.hpp"
#include "tests/results/scores/system_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

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

const ReportFigure& figure_of(const ReportSection& section, const std::string& table) {
  return *std::ranges::find(section.figures, table,
                            [](const ReportFigure& figure) { return figure.table.name; });
}

// A system_run whose learning rate makes it a variant.
std::filesystem::path write_variant(const std::filesystem::path& folder, int seed, double noise,
                                    const std::string& rate) {
  write_system_run(folder, seed, noise, rate == "0.1" ? 3 : 7);
  write_text(folder / "config.yaml", config_text(seed, 0, 2) + "optimizer:\n  lr: " + rate + "\n");
  return folder;
}

class ReportTest : public FolderTest {
 protected:
  // Runs of the seeds from 1 on of two variants, of these noises.
  void write_variants(int seeds, double noise_a, double noise_b) const {
    for (int seed = 1; seed <= seeds; ++seed) {
      write_variant(folder_ / ("runs/a" + std::to_string(seed)), seed, noise_a, "0.1");
      write_variant(folder_ / ("runs/b" + std::to_string(seed)), seed, noise_b, "0.2");
    }
  }
};

TEST_F(ReportTest, TellsARunWithPredictions) {
  const Report report = make_report(read_results({write_run(folder_ / "run", PredictionsCase())}));
  EXPECT_EQ(report.title, "xla");
  EXPECT_EQ(report.subtitle, "1 run: 1 finished \xc2\xb7 layout:xla:random");
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  // Member 0 ranks bert rightly (1); member 1 one of three pairs of resnet wrongly (1/3).
  EXPECT_THAT(csv_of(report, "folds"),
              StartsWith("seed,fold,member,graphs,mean\n5,0,0,1,1\n5,1,1,1,0.333333333333333"));
  EXPECT_THAT(csv_of(report, "loss"), HasSubstr("member 1,100,1\n"));
  EXPECT_THAT(csv_of(report, "validation"), HasSubstr("xla together,50,0.75\n"));
  EXPECT_THAT(csv_of(report, "timing"), HasSubstr("xla,2,375,487.5,62.5,16.666666666666668,50\n"));
  EXPECT_THAT(csv_of(report, "hashes"),
              HasSubstr("xla,0000000000000002,0000000000000003,0000000000000004,"));
  EXPECT_THAT(csv_of(report, "scores"), HasSubstr("xla,validation,mean of members,0,"));
  // resnet 5 4 6 against 10 20 30: the best of one is 20.
  EXPECT_THAT(csv_of(report, "slowdown-out-of-fold"), HasSubstr("resnet,1,100,,,\n"));
}

TEST_F(ReportTest, TellsTheMeanOfEachOfSeveralCollections) {
  PredictionsCase predictions("layout:xla:default+layout:xla:random");
  for (PredictionEntry& graph : predictions.header.graphs)
    graph.name = (graph.name == "bert" ? "layout:xla:default:" : "layout:xla:random:") + graph.name;
  const auto graphs_of = [&](const char* run) {
    return section_of(make_report(read_results({write_run(folder_ / run, predictions)})), "graphs");
  };
  const ReportSection graphs = graphs_of("run");
  EXPECT_THAT(figure_of(graphs, "graphs-out-of-fold").sentence,
              HasSubstr(" Means of the members: layout:xla:default 1.0000, layout:xla:random "
                        "0.3333, mean of collections 0.6667."));
  EXPECT_THAT(figure_of(graphs, "graphs-valid").sentence,
              HasSubstr(": layout:xla:default undefined, layout:xla:random 0.0000, mean of "
                        "collections undefined."));
  predictions.graphs[0].runtime = {10, 10, 10};  // no ranking of bert is right or wrong
  EXPECT_THAT(figure_of(graphs_of("undefined"), "graphs-out-of-fold").sentence,
              HasSubstr(": layout:xla:default undefined, layout:xla:random 0.3333, mean of "
                        "collections undefined."));
}

TEST_F(ReportTest, SaysThatLossesOfSlatesOfOtherSizesDoNotCompare) {
  const auto sentence = [&](int configs_of_b) {
    for (const auto& [name, configs] : {std::pair{"a", 10}, std::pair{"b", configs_of_b}}) {
      PredictionsCase predictions;
      predictions.header.runs[0].parameter_hash += static_cast<std::uint64_t>(configs + *name);
      write_run(folder_ / name, predictions);
      write_text(folder_ / name / "config.yaml",
                 config_text(5, 0, 3, name) + fmt::format("batch:\n  configs: {}\n", configs));
    }
    const Report report = make_report(read_results({folder_ / "a", folder_ / "b"}));
    return figure_of(section_of(report, "curves"), "loss").sentence;
  };
  EXPECT_THAT(sentence(10), Not(HasSubstr("do not compare")));
  EXPECT_THAT(sentence(64), HasSubstr("do not compare"));
}

TEST_F(ReportTest, TheSameInputGivesTheSameBytes) {
  write_run(folder_ / "run", PredictionsCase());
  const auto html = [&] { return report_html(make_report(read_results({folder_ / "run"}))); };
  EXPECT_EQ(html(), html());
}

TEST_F(ReportTest, ARunWithoutAnythingSaysWhatIsMissingAndWhichKeyGivesIt) {
  write_text(folder_ / "run" / "config.yaml", config_text(1, 0, 2));
  const Report report = make_report(read_results({folder_ / "run"}));
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  for (const std::string id :
       {"curves", "graphs", "folds", "variance", "sizes", "slowdown", "timing"}) {
    const ReportSection& section = section_of(report, id);
    EXPECT_TRUE(section.figures.empty()) << id;
    ASSERT_FALSE(section.missing.empty()) << id;
  }
  EXPECT_THAT(section_of(report, "slowdown").missing.front(), HasSubstr("predictions.rows"));
  EXPECT_THAT(section_of(report, "curves").missing.back(), HasSubstr("train.evaluate_every"));
  EXPECT_THAT(section_of(report, "summary").missing.front(), HasSubstr("Not finished: "));
}

TEST_F(ReportTest, ADamagedRunIsToldWithItsFaults) {
  write_run(folder_ / "run", PredictionsCase());
  write_text(folder_ / "run" / "predictions.h5", "nothing");
  write_text(folder_ / "run" / "metrics.jsonl", std::string("\xff{\n") + kMetrics + "{\"kind");
  const Report report = make_report(read_results({folder_ / "run"}));
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  EXPECT_EQ(section_of(report, "summary").missing.size(), 3u);  // both faults, and no scores
  EXPECT_FALSE(section_of(report, "curves").figures.empty());
}

TEST_F(ReportTest, NamesWithMarkupAreText) {
  PredictionsCase predictions;
  predictions.header.graphs[2].name = "<script>alert(1)</script>";
  predictions.graphs[2].scores[1] = {3, 1, 2};
  write_run(folder_ / "<b>", predictions);
  write_text(folder_ / "<b>" / "config.yaml", config_text(5, 0, 3, "'\"><img src=x>'"));
  const std::string html = report_html(make_report(read_results({folder_ / "<b>"})));
  EXPECT_EQ(XmlFault::find(html), "");
  EXPECT_THAT(html, AllOf(Not(HasSubstr("<script>alert")), Not(HasSubstr("<img")),
                          HasSubstr("&lt;script&gt;")));
}

TEST_F(ReportTest, NamesTheVariantThatWonAndByHowMuch) {
  write_variants(3, 3, 30);
  const Report report = make_report(read_results({folder_ / "runs"}), false);
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  const ReportSection& summary = section_of(report, "summary");
  ASSERT_GE(summary.headline.size(), 3u);
  EXPECT_THAT(summary.headline[0],
              AllOf(StartsWith("xla optimizer.lr=0.1 scores higher on these graphs if trained "
                               "again: Kendall tau 0."),
                    HasSubstr("mean of members, 3 trainings, 6 validation graphs of 4 families"),
                    HasSubstr("more than xla optimizer.lr=0.2")));
  EXPECT_THAT(summary.headline[1],
              StartsWith("Other trainings on these graphs: a difference of +"));
  EXPECT_THAT(section_of(report, "summary").headline,
              Contains(HasSubstr("0 of 3 trainings collapsed, so the rate is at most 63 %")));
  EXPECT_EQ(figure_of(summary, "differences").table.rows.size(), 1u);
  EXPECT_EQ(figure_of(summary, "scores").table.rows[0][5].exact, "3 trainings");
  EXPECT_EQ(figure_of(summary, "runs").table.rows.size(), 6u);
  // Both variants share a chart, and the sentence stands once.
  EXPECT_EQ(section_of(report, "graphs").figures.size(), 2u);  // validation, and out of fold
  EXPECT_EQ(section_of(report, "timing").figures.size(), 1u);
}

TEST_F(ReportTest, NamesNoWinnerAmongEqualVariants) {
  write_variants(2, 12, 12);
  const Report report = make_report(read_results({folder_ / "runs"}), false);
  EXPECT_THAT(section_of(report, "summary").headline[0], StartsWith("Undecided: "));
  // One training of each says nothing of others, and has no p value.
  const Report single =
      make_report(read_results({folder_ / "runs/a1", folder_ / "runs/b1"}), false);
  const ReportSection& summary = section_of(single, "summary");
  EXPECT_THAT(summary.headline[0], StartsWith("No winner can be named: "));
  EXPECT_EQ(figure_of(summary, "differences").table.rows[0][4].exact, "");
}

// Trainings that score alike: neither intervals of width 0 nor p of 0.
TEST_F(ReportTest, SaysWhereASpreadIsNotKnown) {
  write_variants(2, 0, 0);
  const Report report = make_report(read_results({folder_ / "runs"}), false);
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  const ReportSection& summary = section_of(report, "summary");
  EXPECT_THAT(summary.headline[0], StartsWith("No winner can be named: "));
  EXPECT_THAT(summary.headline[1], HasSubstr("all trainings of two variants score alike"));
  EXPECT_EQ(figure_of(summary, "differences").table.rows[0][3].exact, "-");
  EXPECT_EQ(figure_of(summary, "scores").table.rows[0][4].exact, "-");
  const Report one = make_report(read_results({folder_ / "runs/a1", folder_ / "runs/a2"}), false);
  EXPECT_THAT(section_of(one, "summary").headline[1],
              StartsWith("Scores of all trainings are alike, so their spread is not known"));
}

TEST_F(ReportTest, MembersOfOneTrainingAreNoTrainings) {
  const Report report =
      make_report(read_results({write_system_run(folder_ / "run", 1, 10)}), false);
  const ReportSection& summary = section_of(report, "summary");
  const TextTable& scores = figure_of(summary, "scores").table;
  EXPECT_EQ(scores.rows[0][5].exact, "2 members of one training");
  EXPECT_EQ(scores.rows[0][8].exact, "1");
  EXPECT_THAT(summary.headline[1], StartsWith("Other members of this training: "));
  EXPECT_THAT(summary.headline[2], HasSubstr("one training cannot tell"));
}

TEST_F(ReportTest, ATrainingThatIsThereTwiceCountsOnce) {
  const auto run = write_system_run(folder_ / "runs/a", 1, 10);
  std::filesystem::copy(run, folder_ / "runs/backup", std::filesystem::copy_options::recursive);
  const Report report = make_report(read_results({folder_ / "runs"}), false);
  const ReportSection& summary = section_of(report, "summary");
  EXPECT_EQ(figure_of(summary, "runs").table.rows.size(), 1u);
  EXPECT_THAT(summary.missing,
              ElementsAre(AllOf(HasSubstr("backup"), HasSubstr("is the same training as"),
                                HasSubstr("equal parameters"), HasSubstr("counts once"))));
}

TEST_F(ReportTest, TellsTheScoresSoFarOfARunThatTrains) {
  write_text(folder_ / "run/config.yaml", config_text(1, 0, 3));
  write_text(
      folder_ / "run/metrics.jsonl",
      R"({"kind":"start","step":0,"time":"2026-01-02 03:04:05 UTC","command":"tpudist train x.yaml",)"
      R"("version":"9.9","commit":"abc","host":"node7","processor":"a chip","ranks":2,"threads":1,)"
      R"("libtorch":"2.11.0","kernels":"avx2","device":"CPU","settings":{}})"
      "\n" +
          std::string(kMetrics).substr(0, std::string(kMetrics).rfind("{\"kind\":\"step\"")));
  const FolderLock lock(folder_ / "run", "tpudist train");
  const Report report = make_report(read_results({folder_ / "run"}));
  EXPECT_THAT(csv_of(report, "runs"), HasSubstr("0.375,0.75,\"so far, step 50, at most 8 rows\""));
  EXPECT_THAT(csv_of(report, "runs"), HasSubstr("running,50 of 100,25"));
  EXPECT_EQ(report.facts[0].text, "50 of 100");
  EXPECT_EQ(section_of(report, "summary").headline[0],
            "No final scores yet. xla has 0.3750 Kendall tau so far (mean of members) after step "
            "50 of 100.");
  EXPECT_EQ(report.facts[2].text, "2 ranks x 1 thread on node7 (a chip)");
  EXPECT_EQ(report.facts[3].text, "tpudist 9.9, commit abc");
  EXPECT_EQ(report.facts[4].text, "tpudist train x.yaml");
}

TEST_F(ReportTest, VariantsThatWereScoredOnOtherDataAreNotCompared) {
  write_variant(folder_ / "runs/a", 1, 3, "0.1");
  PredictionsCase other = system_run(2, 3, 7);
  other.graphs[3].runtime[0] += 1;
  other.write((write_variant(folder_ / "runs/b", 2, 3, "0.2")) / "predictions.h5");
  const Report report = make_report(read_results({folder_ / "runs"}), false);
  const ReportSection& summary = section_of(report, "summary");
  EXPECT_THAT(summary.headline[0], HasSubstr("not scored on the same data"));
  EXPECT_THAT(summary.headline[1], HasSubstr("run times of"));
}

TEST_F(ReportTest, RunsOfOtherCollectionsStandBesideEachOther) {
  PredictionsCase tile("tile:xla");
  write_run(folder_ / "a", PredictionsCase());
  write_run(folder_ / "b", tile);
  write_text(folder_ / "b" / "config.yaml",
             "name: tile\ndata: {collection: 'tile:xla'}\ntrain: {steps: 100}\n");
  const Report report = make_report(read_results({folder_ / "a", folder_ / "b"}));
  EXPECT_EQ(XmlFault::find(report_html(report)), "");
  EXPECT_THAT(csv_of(report, "folds-1"), HasSubstr("5,0,0,1,1\n"));
  EXPECT_THAT(csv_of(report, "folds-2"), HasSubstr("seed,fold"));
  EXPECT_THAT(csv_of(report, "settings-1"), HasSubstr("data.collection,layout:xla:random"));
  EXPECT_THAT(csv_of(report, "settings-2"), HasSubstr("tile:xla"));
}

}  // namespace
}  // namespace tpudist::test
