#include "results/scores/table_intervals.hpp"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/means.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

TableJudgement table() {
  TableJudgement table;
  table.title = "valid split";
  table.columns = {"member 0", "member 1", "member 2"};
  table.gains = {0.01, -0.01, 0.03};
  table.kept = 0.7;
  table.without_training = {kNone};
  const auto graph = [&](const char* name, const char* family, double score) {
    GraphEvaluation& added = table.graphs.emplace_back();
    added.name = name;
    added.family = family;
    added.kept = score;
  };
  graph("a1", "a", 0.8);
  graph("a2", "a", 0.7);
  graph("b1", "b", 0.6);
  graph("test", "c", kNone);
  return table;
}

TEST(TableIntervals, JackknifeLeavesOutOneMemberAfterTheOther) {
  const TableIntervals found = table_intervals(table());
  ASSERT_TRUE(found.these_graphs);
  EXPECT_EQ(found.columns, 3);
  EXPECT_DOUBLE_EQ(found.these_graphs->value, 0.7);
  // Gains of 0.01, -0.01 and 0.03 lie 0, 0.02 and 0.02 from their mean: 2 / 3 of 0.0008.
  EXPECT_NEAR(found.these_graphs->error, std::sqrt(0.0016 / 3), 1e-12);
  EXPECT_EQ(found.these_graphs->degrees, 2);
  EXPECT_THAT(table_interval_text(table()),
              AllOf(HasSubstr("other members of this training    0.7000 ("),
                    HasSubstr("one training does not show how others would score"),
                    Not(HasSubstr("if trained again"))));
  EXPECT_EQ(table_interval_json(table()).at("these_graphs").at("between"),
            "members of one training");
}

TEST(TableIntervals, EndWithTheSlowdownsOfTheCombination) {
  TableJudgement measured = table();
  EXPECT_THAT(table_interval_text(measured), Not(HasSubstr("slower")));
  for (std::size_t g = 0; g < 3; ++g) {
    measured.graphs[g].rows = 50;
    measured.graphs[g].metrics.slowdown_5 = 0.02 * (g + 1.0);
  }
  EXPECT_THAT(table_interval_text(measured),
              AllOf(HasSubstr("how much slower than the fastest the best of the first k is"),
                    ContainsRegex("\n  mean +- +4.00 % \\(0.00 to [0-9.]+\\) +- +-\n$")));
  EXPECT_NEAR(table_interval_json(measured).at("slowdown").at("5").at("mean").get<double>(), 0.04,
              1e-12);
  measured.trained_on = true;
  EXPECT_TRUE(table_interval_json(measured).at("slowdown").is_null());
}

// BERTs of two depths beside a ResNet: two clusters, not three.
TEST(TableIntervals, OfOtherFamiliesTakeKinForOneFamily) {
  TableJudgement berts = table();
  berts.graphs[0].family = "bert_l2";
  berts.graphs[1].family = "bert_l4";
  berts.graphs[2].family = "resnet";
  EXPECT_EQ(table_intervals(berts).families->families, 2);
  EXPECT_THAT(table_interval_text(berts), HasSubstr("  2 of 3 model families are BERTs: they"));
  EXPECT_THAT(final_interval_text({&berts, 1}), HasSubstr("  2 of 3 model families are BERTs"));
  berts.graphs[2].family = "electra";
  EXPECT_EQ(table_intervals(berts).families->families, 3);
  EXPECT_THAT(table_interval_text(berts), HasSubstr("\"other families\" are other BERTs"));
  EXPECT_THAT(table_interval_text(table()), Not(HasSubstr("BERT")));
}

// Members of a training share what it saw, and leave together.
TEST(TableIntervals, LeavesOutWholeTrainings) {
  TableJudgement several = table();
  several.without_training = {0.69, 0.71, 0.66, 0.70};
  const TableIntervals found = table_intervals(several);
  ASSERT_TRUE(found.these_graphs);
  // Around 0.69: 0, 0.02, 0.03, 0.01; 3 / 4 of 0.0014.
  EXPECT_NEAR(found.these_graphs->error, std::sqrt(0.00105), 1e-12);
  EXPECT_EQ(found.these_graphs->degrees, 3);
  EXPECT_THAT(table_interval_text(several),
              AllOf(HasSubstr("these graphs, if trained again    0.7000 ("),
                    HasSubstr("jackknife of 4 trainings"), Not(HasSubstr("this training"))));
  const auto json = table_interval_json(several).at("these_graphs");
  EXPECT_EQ(json.at("between"), "trainings");
  EXPECT_EQ(json.at("trainings"), 4);
}

TEST(TableIntervals, FamiliesAreOfThisModelAndOfMeasuredGraphs) {
  const TableIntervals found = table_intervals(table());
  ASSERT_TRUE(found.families);
  EXPECT_EQ(found.families->graphs, 3);
  EXPECT_EQ(found.families->families, 2);
  EXPECT_EQ(found.families->runs, 1);
  EXPECT_THAT(table_interval_text(table()),
              AllOf(HasSubstr("valid split, 95 % intervals"), HasSubstr("jackknife of 3 members"),
                    HasSubstr("this model only"),
                    HasSubstr("2 families without a failure leave a failure rate of up to 78 %")));
}

TEST(FinalInterval, IsOfCollectionsWithEqualWeight) {
  TableJudgement second = table();
  second.kept = 0.5;
  for (GraphEvaluation& graph : second.graphs) graph.kept -= 0.2;
  const std::string text = final_interval_text(std::array{table(), second});
  // The mean of 0.7 and 0.5; two independent jackknives with two degrees of freedom each.
  EXPECT_THAT(text, AllOf(HasSubstr("0.6000 ("), HasSubstr("t(4))"),
                          HasSubstr("6 graphs of 2 families in 2 collections")));
  second.kept = kNone;
  EXPECT_EQ(final_interval_text(std::array{table(), second}), "");
}

// The same members rank both collections, and leave both at once: that is one jackknife of three values
// and not two independent ones. The mean of collections is another one than that over graphs.
TEST(FinalInterval, OfMembersThatRankSeveralCollectionsLeavesThemOutOfAll) {
  TableJudgement second = table();
  second.kept = 0.5;
  second.gains = {0.03, 0.01, -0.01};
  for (GraphEvaluation& graph : second.graphs) graph.kept -= 0.2;
  TableJudgement both = table();
  both.kept = 0.65;
  both.parts = {table(), second};
  const TableIntervals found = final_intervals({&both, 1});
  EXPECT_DOUBLE_EQ(found.score, 0.6);
  ASSERT_TRUE(found.these_graphs && found.families);
  EXPECT_DOUBLE_EQ(found.these_graphs->value, 0.6);
  // Mean gains of 0.02, 0 and 0.01: 2 / 3 of 0.0002.
  EXPECT_NEAR(found.these_graphs->error, std::sqrt(0.0004 / 3), 1e-12);
  EXPECT_EQ(found.these_graphs->degrees, 2);
  EXPECT_EQ(found.families->collections, 2);
  EXPECT_DOUBLE_EQ(found.families->interval.value, 0.6);
  EXPECT_THAT(final_interval_text({&both, 1}),
              AllOf(HasSubstr("0.6000 ("), HasSubstr("6 graphs of 2 families in 2 collections")));
  // Beside a third collection each counts a third.
  EXPECT_NEAR(final_intervals(std::array{both, table()}).score, (0.7 + 0.5 + 0.7) / 3, 1e-12);
  both.parts[1].kept = kNone;
  EXPECT_TRUE(std::isnan(final_intervals({&both, 1}).score));
  EXPECT_EQ(final_interval_text({&both, 1}), "");
}

TEST(TableIntervals, SayWhereThereIsNotEnough) {
  TableJudgement one = table();
  one.gains = {kNone};
  one.graphs.erase(one.graphs.begin() + 2);
  EXPECT_THAT(table_interval_text(one),
              AllOf(HasSubstr("not enough: one training of one member; decide how many"),
                    HasSubstr("not enough: all graphs are of one family")));
  EXPECT_TRUE(table_interval_json(one).at("these_graphs").is_null());
  one.kept = kNone;
  EXPECT_EQ(table_interval_text(one), "");
}

// One of ten trainings collapses: the bound of its rate, and the mean of the others.
TEST(CollapseLine, TellsTheRateOfCollapsesAndTheMeanOfTheOthers) {
  RunScoreTable scores;
  for (int g = 0; g < 3; ++g) {
    scores.graphs.push_back("g" + std::to_string(g));
    scores.families.push_back("f" + std::to_string(g));
    auto& own = scores.scores.emplace_back();
    for (int r = 0; r < 10; ++r) own.push_back(0.7 + 0.1 * g + (r % 2 == 0 ? 0.002 : -0.002));
  }
  EXPECT_EQ(collapse_line(scores),
            "0 of 10 trainings collapsed, so the rate is at most 26 % (95 %)");
  for (auto& own : scores.scores) own[4] -= 0.5;
  EXPECT_EQ(collapse_line(scores),
            "1 of 10 trainings collapsed, so the rate is at most 39 % (95 %); without collapses "
            "the mean is 0.7998");
  // By the median, which half of the trainings do not move; two do not show which one is low.
  const auto of = [](std::vector<double> trainings) {
    return collapse_line({.graphs = {"g"}, .families = {"f"}, .folds = {}, .scores = {trainings}});
  };
  EXPECT_THAT(of({0.75, 0.74, 0.10}), HasSubstr("1 of 3 trainings collapsed"));
  EXPECT_THAT(of({0.75, 0.1, 0.74, 0.05, 0.76, 0.4, 0.75, 0.2, 0.74, 0.3}),
              AllOf(HasSubstr("5 of 10 trainings collapsed"), HasSubstr("the mean is 0.7480")));
  EXPECT_THAT(of({0.6, 0.1}), HasSubstr("2 trainings without a collapse"));
}

}  // namespace
}  // namespace tpudist::test
