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
  return {{"layout:xla:random:a", "a", {0.3, 0.1, 0, 0}},
          {"layout:xla:random:b", "b", {0.1, 0.1, 0, 0}},
          {"tile:xla:c", "c", {0.2, 0.4, 0, kNone}}};
}

TEST(MeanSlowdown, IsTheMeanOverGraphsWithAnIntervalOverFamilies) {
  const MeanSlowdown mean = mean_slowdown(three(), 0);
  // Three families: 0.2 +- t(2) x 0.1 / sqrt(3), and no slowdown lies below 0.
  EXPECT_NEAR(mean.families->high, 0.2 + 4.302653 * 0.1 / std::sqrt(3), 1e-6);
  EXPECT_EQ(slowdown_text(mean), "20.00 % (0.00 to 44.84)");
  EXPECT_LT(mean_slowdown(three(), 0, /*difference=*/true).families->low, 0);
  EXPECT_EQ(mean_slowdown(three(), 3).mean, 0);  // of the graphs with a value
  Graphs kin = three(), same = three();
  kin[0].family = "bert_l2";
  kin[1].family = "bert_l4";
  same[1].family = "a";
  EXPECT_EQ(slowdown_text(mean_slowdown(kin, 0)), slowdown_text(mean_slowdown(same, 0)));
  same[2].family = "a";
  EXPECT_EQ(slowdown_text(mean_slowdown(same, 0)), "20.00 %");
  EXPECT_EQ(slowdown_text(mean_slowdown({}, 0)), "-");
}

TEST(SlowdownTable, HasARowForEachNameAndCollection) {
  EXPECT_THAT(slowdown_table({{"mean", three()}}),
              AllOf(StartsWith("how much slower than the fastest the best of the first k is"),
                    ContainsRegex("top 1 +top 5 +top 10 +top 100"),
                    ContainsRegex("\n  layout:xla:random +20.00 %"),
                    ContainsRegex("\n  tile:xla +20.00 %"), ContainsRegex("\n  mean +20.00 %")));
  EXPECT_THAT(slowdown_table({{"A", three()}}), ContainsRegex("\n  A tile:xla +20.00 %"));
  const auto json = slowdown_json(three());
  EXPECT_NEAR(json.at("1").at("mean").get<double>(), 0.2, 1e-12);
  EXPECT_NEAR(json.at("collections").at("tile:xla").at("5").at("mean").get<double>(), 0.4, 1e-12);
  EXPECT_TRUE(json.at("collections").at("tile:xla").at("100").at("mean").is_null());
  EXPECT_FALSE(slowdown_json(Graphs{three()[0]}).contains("collections"));
  EXPECT_EQ(slowdown_table({{"A", {{"a", "a"}}}}), "");
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
  ASSERT_EQ(valid.size(), 6u);
  ASSERT_EQ(folds.size(), 2u);
  const PredictionsCase expected = system_run(1, 12);
  const PredictionRows &first = expected.graphs[0], &third = expected.graphs[2];
  const auto bert = std::ranges::find(valid, "bert_pretraining.4x4.fp16", &GraphSlowdowns::name);
  for (std::size_t top = 0; top < 3; ++top)
    EXPECT_EQ(bert->at[top],
              slowdown_at(combine_scored(third.scores, {}), third.targets(), kTops[top]));
  EXPECT_THAT(bert->at[3], IsNan());  // of 30 configurations
  // A training graph is ranked by the one member that held it out.
  EXPECT_EQ(folds[0].at[0], slowdown_at(first.scores[0], first.targets(), 1));
}

TEST_F(SlowdownsOfRuns, AreComparedOnTheGraphsOfBoth) {
  const std::vector<RunRecord> a = read("a", 1, 12), b = read("b", 2, 4);
  const SlowdownPair pair = compare_slowdowns(a, b, true);
  ASSERT_EQ(pair.difference.size(), 6u);
  for (std::size_t g = 0; g < 6; ++g) {
    EXPECT_EQ(pair.a[g].name, pair.b[g].name);
    EXPECT_EQ(pair.difference[g].at[0], pair.a[g].at[0] - pair.b[g].at[0]);
  }
  EXPECT_THAT(pair.text(), ContainsRegex("\n  A  [^\n]+\n  B  [^\n]+\n  A - B  "));
  for (const char* side : {"a", "b", "difference"})
    EXPECT_TRUE(pair.json().at(side).at("10").at("mean").is_number()) << side;
  std::vector<RunRecord> none = b, twice = {a[0], a[0]};
  none[0].predictions = nullptr;
  const SlowdownPair missing = compare_slowdowns(a, none, true);
  EXPECT_THAT(missing.text(), HasSubstr("no slowdowns: both sides need predictions"));
  EXPECT_THAT(missing.json().at("missing").get<std::string>(), HasSubstr("predictions.rows"));
  EXPECT_THAT(compare_slowdowns(twice, b, true).text(), StartsWith("no slowdowns: "));
}

}  // namespace
}  // namespace tpudist::test
