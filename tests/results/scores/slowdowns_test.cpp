#include "results/scores/slowdowns.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "results/scores/result_set.hpp"
#include "statistics/ranking/combination.hpp"
#include "statistics/ranking/metrics.hpp"
#include "tests/results/scores/system_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

using Graphs = std::vector<GraphSlowdowns>;

Graphs three() {
  return {{"xla:a1", "a", {0.3, 0.1, 0, 0}},
          {"xla:b1", "b", {0.1, 0.1, 0, 0}},
          {"xla:c1", "c", {0.2, 0.4, 0, kNone}}};
}

TEST(MeanSlowdown, IsTheMeanOverGraphsWithAnIntervalOverFamilies) {
  const MeanSlowdown one = mean_slowdown(three(), 0);
  EXPECT_NEAR(one.mean, 0.2, 1e-12);
  ASSERT_TRUE(one.families);
  // Three families: 0.2 +- t(2) x 0.1 / sqrt(3), and no slowdown lies below 0.
  EXPECT_NEAR(one.families->high, 0.2 + 4.302653 * 0.1 / std::sqrt(3), 1e-6);
  EXPECT_EQ(one.families->low, 0);
  EXPECT_LT(mean_slowdown(three(), 0, /*difference=*/true).families->low, 0);
  EXPECT_EQ(slowdown_text(one), "20.00 % (0.00 to 44.84)");
  // A graph without a value does not count.
  EXPECT_EQ(mean_slowdown(three(), 3).mean, 0);
  Graphs family = three();
  for (GraphSlowdowns& graph : family) graph.family = "a";
  EXPECT_FALSE(mean_slowdown(family, 0).families);
  EXPECT_EQ(slowdown_text(mean_slowdown(family, 0)), "20.00 %");
  EXPECT_EQ(slowdown_text(mean_slowdown({}, 0)), "-");
}

TEST(MeanSlowdown, TakesKinForOneFamily) {
  Graphs kin = three(), same = three();
  kin[0].family = "bert_l2";
  kin[1].family = "bert_l4";
  same[1].family = "a";
  EXPECT_EQ(slowdown_text(mean_slowdown(kin, 0)), slowdown_text(mean_slowdown(same, 0)));
  EXPECT_NE(slowdown_text(mean_slowdown(kin, 0)), slowdown_text(mean_slowdown(three(), 0)));
}

TEST(SlowdownTable, HasARowForEachNameAndCollection) {
  const std::string alone = slowdown_table({{"A", three()}});
  EXPECT_THAT(alone, AllOf(StartsWith("slowdown of the best of the first k"),
                           ContainsRegex("top 1 +top 5 +top 10 +top 100"),
                           ContainsRegex("\n  A +20.00 %")));
  Graphs two = three();
  for (GraphSlowdowns& graph : two) graph.name.replace(0, 3, "layout:xla:random");
  two[2].name = "tile:xla:k";
  EXPECT_THAT(slowdown_table({{"mean", two}}),
              AllOf(ContainsRegex("\n  layout:xla:random +20.00 %"),
                    ContainsRegex("\n  tile:xla +20.00 %"), ContainsRegex("\n  mean +20.00 %")));
  EXPECT_THAT(slowdown_table({{"A", two}}), ContainsRegex("\n  A tile:xla +20.00 %"));
  const auto json = slowdown_json(two);
  EXPECT_NEAR(json.at("1").at("mean").get<double>(), 0.2, 1e-12);
  EXPECT_NEAR(json.at("collections").at("tile:xla").at("5").at("mean").get<double>(), 0.4, 1e-12);
  EXPECT_TRUE(json.at("collections").at("tile:xla").at("100").at("mean").is_null());
  EXPECT_FALSE(slowdown_json(Graphs(two.begin(), two.begin() + 2)).contains("collections"));
  EXPECT_EQ(slowdown_table({{"A", {{"a", "a"}}}}), "");
  EXPECT_EQ(slowdown_table({}), "");
}

class SlowdownsOfRuns : public FolderTest {
 protected:
  std::vector<RunRecord> read(const std::string& name, int seed, double noise) {
    return read_results({write_system_run(folder_ / name, seed, noise)}).runs;
  }
};

TEST_F(SlowdownsOfRuns, AreOfTheMembersTogetherThatNeverSawTheGraph) {
  const std::vector<RunRecord> runs = read("a", 1, 12);
  const Graphs valid = together_slowdowns(runs, true), folds = together_slowdowns(runs, false);
  EXPECT_EQ(valid.size(), 6u);
  ASSERT_EQ(folds.size(), 2u);
  const PredictionsCase expected = system_run(1, 12);
  for (const GraphSlowdowns& graph : valid) {
    const auto at = std::ranges::find(expected.header.graphs, graph.name, &PredictionEntry::name);
    const PredictionRows& rows = expected.graphs[at - expected.header.graphs.begin()];
    const std::vector<double> combined = combine_scored(rows.scores, {});
    for (std::size_t top = 0; top < kTops.size(); ++top)
      EXPECT_EQ(graph.at[top], slowdown_at(combined, rows.targets(), kTops[top])) << graph.name;
  }
  // Each training graph is ranked by the one member that held it out.
  EXPECT_EQ(folds[0].at[0],
            slowdown_at(expected.graphs[0].scores[0], expected.graphs[0].targets(), 1));
  for (const GraphSlowdowns& graph : together_slowdowns(read("right", 2, 0), true))
    EXPECT_THAT(graph.at, Each(0));
}

TEST_F(SlowdownsOfRuns, AreComparedOnTheGraphsOfBoth) {
  const std::vector<RunRecord> a = read("a", 1, 12), b = read("b", 2, 4);
  const SlowdownPair pair = compare_slowdowns(a, b, true);
  EXPECT_EQ(pair.missing, "");
  ASSERT_EQ(pair.difference.size(), 6u);
  for (std::size_t g = 0; g < 6; ++g) {
    EXPECT_EQ(pair.a[g].name, pair.b[g].name);
    EXPECT_EQ(pair.difference[g].at[0], pair.a[g].at[0] - pair.b[g].at[0]);
  }
  EXPECT_THAT(pair.text(), AllOf(ContainsRegex("\n  A  "), ContainsRegex("\n  B  "),
                                 ContainsRegex("\n  A - B  ")));
  for (const char* side : {"a", "b", "difference"})
    EXPECT_TRUE(pair.json().at(side).at("100").at("mean").is_number()) << side;
  std::vector<RunRecord> none = b;
  none[0].predictions = nullptr;
  const SlowdownPair missing = compare_slowdowns(a, none, true);
  EXPECT_THAT(missing.text(), HasSubstr("no slowdowns: both sides need predictions"));
  EXPECT_THAT(missing.json().at("missing").get<std::string>(), HasSubstr("predictions.rows"));
}

TEST_F(SlowdownsOfRuns, SayWhyPredictionsCannotBeJoined) {
  std::vector<RunRecord> twice = read("a", 1, 12);
  twice.push_back(twice[0]);
  EXPECT_THAT(compare_slowdowns(twice, twice, true).text(), StartsWith("no slowdowns: "));
}

}  // namespace
}  // namespace tpudist::test
