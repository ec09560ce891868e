#include "results/scores/score_table.hpp"

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "data/schema/collection.hpp"
#include "results/scores/submission.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

using Values = std::vector<double>;

// Only one of the six pairs is ranked the wrong way round: (1, 3).
const Values kScores{4, 2, 3, 1}, kTargets{40, 10, 30, 20};

TEST(ScoreGraph, HoldsEveryMetricOfALayoutGraph) {
  const GraphMetrics scores = score_graph(kScores, kTargets, false);
  EXPECT_EQ(scores.configs, 4);
  EXPECT_DOUBLE_EQ(scores.kendall_tau, 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores.opa, 5.0 / 6);
  EXPECT_DOUBLE_EQ(scores.slowdown_1, 1);
  EXPECT_DOUBLE_EQ(scores.slowdown_5, 0);
  EXPECT_DOUBLE_EQ(scores.slowdown_100, 0);
  EXPECT_TRUE(std::isnan(scores.tile_score));
  EXPECT_EQ(primary_score(scores, false), scores.kendall_tau);
}

TEST(ScoreGraph, HoldsTheTileScoreOfATileGraph) {
  const Values scores{1, 2, 3, 4, 5, 6}, targets{20, 20, 20, 20, 15, 10};
  const GraphMetrics result = score_graph(scores, targets, true);
  EXPECT_DOUBLE_EQ(result.tile_score, 0.5);
  EXPECT_EQ(primary_score(result, true), result.tile_score);
}

TEST(PrimaryMetric, IsTheFirstColumnOfTheCollection) {
  EXPECT_EQ(primary_metric("tile:own").name, "tile_score");
  EXPECT_EQ(primary_metric("layout:xla:random").name, "kendall_tau");
  EXPECT_DOUBLE_EQ(primary_metric("layout:xla:random").of(kScores, kTargets), 4.0 / 6);
}

TEST(ScoreGraph, PassesOnWhatTheMetricsRefuse) {
  EXPECT_THROW(score_graph(Values{1, std::nan("")}, Values{1, 2}, false), DataError);
  EXPECT_THROW(score_graph(Values{1, 2, 3}, Values{1, 2}, false), Error);
}

std::vector<GraphMetrics> two_graphs_and_an_undefined_one() {
  std::vector<GraphMetrics> graphs = {score_graph(kScores, kTargets, false),
                                      score_graph(kTargets, kTargets, false),
                                      score_graph(Values{1, 2}, Values{0, 0}, false)};
  graphs[0].name = "first_graph_of_all";
  graphs[1].name = "second";
  graphs[2].name = "unmeasured";
  return graphs;
}

TEST(MeanScores, LeaveOutAndCountUndefinedGraphs) {
  const auto graphs = two_graphs_and_an_undefined_one();
  const MeanScores means = mean_scores_of(graphs, false);
  EXPECT_DOUBLE_EQ(means.mean.kendall_tau, (4.0 / 6 + 1) / 2);
  EXPECT_DOUBLE_EQ(means.mean.slowdown_1, 0.5);
  EXPECT_EQ(means.mean.configs, 10);
  EXPECT_EQ(means.undefined, std::vector<std::int64_t>(score_columns(false).size(), 1));
}

TEST(MeanScores, OfNoGraphsAreUndefined) {
  const MeanScores means = mean_scores_of({}, true);
  EXPECT_TRUE(std::isnan(means.mean.tile_score));
  EXPECT_EQ(means.mean.configs, 0);
}

TEST(ScoreTable, IsAlignedText) {
  const std::string text = score_table_text(two_graphs_and_an_undefined_one(), false);
  const auto lines = split(text, '\n');
  ASSERT_EQ(lines.size(), 1 + 3 + 1 + 6 + 1u) << text;  // header, graphs, mean, notes, end
  for (std::size_t i = 1; i <= 4; ++i) EXPECT_EQ(lines[i].size(), lines[0].size()) << text;
  EXPECT_TRUE(lines[0].starts_with("graph "));
  EXPECT_TRUE(lines[1].starts_with(
      "first_graph_of_all          4        0.6667        0.8333       100.00%"))
      << text;
  EXPECT_TRUE(lines[3].ends_with(" -"));
  EXPECT_TRUE(lines[4].starts_with("mean "));
  EXPECT_EQ(lines[5], "kendall_tau is undefined for 1 of 3 graphs, which its mean leaves out");
}

// Two graphs of one collection, one of the other.
std::vector<GraphMetrics> graphs_of_two_collections() {
  std::vector<GraphMetrics> graphs(3);
  const char* names[] = {"layout:a:x:one", "layout:a:x:two", "layout:b:x:one"};
  const double scores[] = {0.5, 0.7, 0.1};
  for (std::size_t g = 0; g < 3; ++g) {
    graphs[g].name = names[g];
    graphs[g].configs = 10;
    graphs[g].kendall_tau = graphs[g].opa = scores[g];
    graphs[g].slowdown_1 = 0;
  }
  return graphs;
}

TEST(ScoreTable, HasTheMeansOfCollectionsBesideTheMeanOverGraphs) {
  const auto graphs = graphs_of_two_collections();
  const auto means = means_of_collections(graphs, false);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_EQ(means[0].name, "layout:a:x");
  EXPECT_DOUBLE_EQ(means[0].kendall_tau, 0.6);
  EXPECT_DOUBLE_EQ(means[1].kendall_tau, 0.1);
  const GraphMetrics mean = mean_of_collections(means, false);
  EXPECT_EQ(mean.name, "mean of collections");
  EXPECT_DOUBLE_EQ(mean.kendall_tau, 0.35);
  EXPECT_EQ(mean.configs, 30);
  EXPECT_TRUE(std::isnan(mean.slowdown_5));
  const auto lines = split(score_table_text(graphs, false), '\n');
  EXPECT_TRUE(lines[4].starts_with("layout:a:x                  20        0.6000")) << lines[4];
  EXPECT_TRUE(lines[6].starts_with("mean of collections         30        0.3500")) << lines[6];
  EXPECT_TRUE(lines[7].starts_with("mean                        30        0.4333")) << lines[7];
  const nlohmann::json json = score_table_json(graphs, false);
  EXPECT_DOUBLE_EQ(json["collections"]["layout:a:x"]["kendall_tau"].get<double>(), 0.6);
  EXPECT_EQ(json["collections"].size(), 2u);
  EXPECT_DOUBLE_EQ(json["mean_of_collections"]["kendall_tau"].get<double>(), 0.35);
  EXPECT_TRUE(json["mean_of_collections"]["slowdown_5"].is_null());
  EXPECT_NEAR(json["mean"]["kendall_tau"].get<double>(), 1.3 / 3, 1e-15);
  EXPECT_TRUE(means_of_collections(two_graphs_and_an_undefined_one(), false).empty());
  EXPECT_FALSE(score_table_json(two_graphs_and_an_undefined_one(), false).contains("collections"));
}

TEST(ScoreTable, IsJson) {
  const nlohmann::json json = score_table_json(two_graphs_and_an_undefined_one(), false);
  const auto parsed = nlohmann::json::parse(json.dump());  // NaN would not survive
  EXPECT_EQ(parsed["primary"], "kendall_tau");
  EXPECT_DOUBLE_EQ(parsed["mean"]["slowdown_1"].get<double>(), 0.5);
  EXPECT_EQ(parsed["undefined"]["opa"], 1);
  ASSERT_EQ(parsed["graphs"].size(), 3u);
  EXPECT_EQ(parsed["graphs"][0]["name"], "first_graph_of_all");
  EXPECT_EQ(parsed["graphs"][0]["configs"], 4);
  EXPECT_TRUE(parsed["graphs"][2]["kendall_tau"].is_null());
  EXPECT_FALSE(parsed["graphs"][0].contains("tile_score"));
  EXPECT_EQ(score_table_json({}, true)["primary"], "tile_score");
}

TEST(FinalScore, IsTheMeanOfTheCollectionsWhateverTheirNames) {
  const std::vector<CollectionScore> scores{{"layout:own:x", 0.5}, {"tile:xla", 0.9}};
  EXPECT_DOUBLE_EQ(final_score(scores), 0.7);
  EXPECT_TRUE(std::isnan(final_score({})));
}

TEST(FinalScore, NamesWhatItCoversAndWhatIsMissingOfTheFive) {
  const std::vector<CollectionScore> scores{{"layout:own:x", 0.5}, {"tile:xla", 0.9}};
  EXPECT_EQ(final_score_text(scores),
            "final score 0.7000, members together: mean of 2 collections, layout:own:x 0.5000, "
            "tile:xla 0.9000 (without layout:xla:default, layout:xla:random, layout:nlp:default, "
            "layout:nlp:random)\n");
}

TEST(FinalScore, OfAllFiveNamesNoneAsMissing) {
  std::vector<CollectionScore> scores;
  for (const std::string& name : Collection::tpugraphs_names()) scores.push_back({name, 0.25});
  const std::string text = final_score_text(scores);
  EXPECT_EQ(text.find("without"), std::string::npos) << text;
  EXPECT_EQ(text.find("final score 0.2500, members together: mean of 5 collections, "), 0u) << text;
}

TEST(FinalScore, IsUndefinedWhereOneCollectionHasNoScore) {
  const std::vector<CollectionScore> scores{{"layout:own:x", kNone}, {"tile:xla", 0.9}};
  EXPECT_TRUE(std::isnan(final_score(scores)));
  EXPECT_EQ(final_score_text(scores).find("final score undefined, members together: mean of 2 "
                                          "collections, layout:own:x undefined, tile:xla 0.9000"),
            0u);
}

using Values = std::vector<double>;

const Collection kTile = Collection::parse("tile:xla");
const Collection kLayout = Collection::parse("layout:xla:default");

TEST(Submission, ListsAllOfALayoutGraphAndFiveOfATileGraph) {
  Submission submission;
  submission.add(kTile, "a1b2", Values{6, 5, 4, 3, 2, 1, 7});
  submission.add(kTile, "small", Values{2, 1});
  submission.add(kLayout, "bert.4x4", Values{3, -1, 2, 0.5, 10, 0});
  EXPECT_EQ(submission.to_csv(),
            "ID,TopConfigs\n"
            "tile:xla:a1b2,5;4;3;2;1\n"
            "tile:xla:small,1;0\n"
            "layout:xla:default:bert.4x4,1;5;3;2;0;4\n");
}

TEST(Submission, RanksEqualScoresByNumber) {
  EXPECT_THAT(ranking_of(Values{1, 0, 1, 0, -0.0}), ElementsAre(1, 3, 4, 0, 2));
}

TEST(Submission, RefusesWhatCannotBeRanked) {
  Submission submission;
  submission.add(kLayout, "a", Values{1, 2});
  EXPECT_THROW(submission.add(kLayout, "a", Values{1, 2}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b", Values{1, std::nan("")}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b", {}), DataError);
  EXPECT_THROW(submission.add(kLayout, "", Values{1}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b,c", Values{1}), DataError);
  EXPECT_EQ(submission.rows().size(), 1u);
}

TEST(Submission, IsWritten) {
  const TempDir folder;
  Submission submission;
  submission.add(kTile, "kernel", Values{2, 1, 3});
  submission.add(kLayout, "bert", Values{1, 0});
  submission.write(folder / "submission.csv");
  EXPECT_EQ(read_text_file(folder / "submission.csv"), submission.to_csv());
  ASSERT_THAT(submission.rows(), SizeIs(2));
  EXPECT_EQ(submission.rows()[0].id, "tile:xla:kernel");
  EXPECT_THAT(submission.rows()[0].configs, ElementsAre(1, 0, 2));
}

TEST(Submission, OwnCollectionsAreWrittenLikeTpuGraphs) {
  Submission submission;
  submission.add(Collection::parse("layout:my-models:v1"), "net:4x4", Values{3, 1, 2});
  submission.add(Collection::parse("tile:Own"), "k", Values{6, 5, 4, 3, 2, 1});
  EXPECT_EQ(submission.to_csv(),
            "ID,TopConfigs\nlayout:my-models:v1:net:4x4,1;2;0\ntile:Own:k,5;4;3;2;1\n");
}

RC_GTEST_PROP(SubmissionProperty, RankingIsASortedPermutation, (const std::vector<int>& values)) {
  const Values scores(values.begin(), values.end());
  const auto ranking = ranking_of(scores);
  RC_ASSERT(ranking.size() == scores.size());
  for (std::size_t i = 1; i < ranking.size(); ++i) {
    const double a = scores[ranking[i - 1]], b = scores[ranking[i]];
    RC_ASSERT(a < b || (a == b && ranking[i - 1] < ranking[i]));
  }
}

}  // namespace
}  // namespace tpudist::test
