#include "ensemble/table_intervals.hpp"

#include <gmock/gmock.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TableJudgement table() {
  TableJudgement table;
  table.title = "valid split";
  table.columns = {"member 0", "member 1", "member 2"};
  table.gains = {0.01, -0.01, 0.03};
  table.kept = 0.7;
  const auto graph = [&](const char* name, const char* family, double score) {
    GraphJudgement& added = table.graphs.emplace_back();
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
  ASSERT_TRUE(found.columns);
  EXPECT_EQ(found.column_count, 3);
  EXPECT_DOUBLE_EQ(found.columns->value, 0.7);
  // Gains of 0.01, -0.01 and 0.03 lie 0, 0.02 and 0.02 from their mean: 2 / 3 of 0.0008.
  EXPECT_NEAR(found.columns->error, std::sqrt(0.0016 / 3), 1e-12);
  EXPECT_EQ(found.columns->degrees, 2);
}

TEST(TableIntervals, FamiliesAreOfThisModelAndOfMeasuredGraphs) {
  const TableIntervals found = table_intervals(table());
  ASSERT_TRUE(found.families);
  EXPECT_EQ(found.families->graphs, 3);
  EXPECT_EQ(found.families->families, 2);
  EXPECT_EQ(found.families->runs, 1);
  EXPECT_THAT(table_interval_text(table()),
              AllOf(HasSubstr("valid split, 95 % intervals"), HasSubstr("jackknife of 3 members"),
                    HasSubstr("this model only"), HasSubstr("1 in 2")));
}

TEST(FinalInterval, IsOfCollectionsWithEqualWeight) {
  TableJudgement second = table();
  second.kept = 0.5;
  for (GraphJudgement& graph : second.graphs) graph.kept -= 0.2;
  const std::string text = final_interval_text(std::array{table(), second});
  // The mean of 0.7 and 0.5; two independent jackknives with two degrees of freedom each.
  EXPECT_THAT(text, AllOf(HasSubstr("0.6000 ("), HasSubstr("t(4))"),
                          HasSubstr("6 graphs of 2 families in 2 collections")));
  second.kept = kNone;
  EXPECT_EQ(final_interval_text(std::array{table(), second}), "");
}

TEST(TableIntervals, SayWhereThereIsNotEnough) {
  TableJudgement one = table();
  one.gains = {kNone};
  one.graphs.erase(one.graphs.begin() + 2);
  EXPECT_THAT(table_interval_text(one),
              AllOf(HasSubstr("not enough: one member has no spread"),
                    HasSubstr("not enough: all graphs are of one family")));
  EXPECT_TRUE(table_interval_json(one).at("these_graphs").is_null());
  one.kept = kNone;
  EXPECT_EQ(table_interval_text(one), "");
}

}  // namespace
}  // namespace tpudist
