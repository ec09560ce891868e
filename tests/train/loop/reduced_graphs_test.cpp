// Training and all that scores with `data.reduce`, which no shard knows of.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "core/error.hpp"
#include "dist/collectives/communicator.hpp"
#include "results/records/predictions_file.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/loop/forecast.hpp"
#include "train/scoring/collection_scores.hpp"
#include "train/scoring/module_ranking.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kReduce = "data.reduce={keep: config_neighbours}";

Experiment reduced(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.end(), {kReduce, "train.steps=3"});
  return tiny_experiment(std::move(overrides));
}

// The source of a validation graph of the tiny shards.
std::filesystem::path npz_of(const Collection& collection, const std::string& graph) {
  return test::tiny_shards().parent_path() / "npz" / collection.folder() / "valid" /
         (graph + ".npz");
}

std::vector<const TrainedRun*> pointers(const std::vector<TrainedRun>& runs) {
  std::vector<const TrainedRun*> all;
  for (const TrainedRun& run : runs) all.push_back(&run);
  return all;
}

class ReducedGraphs : public TrainTest, protected OneRank {
 protected:
  ReducedGraphs() : OneRank(2) {}
};

TEST_F(ReducedGraphs, HaveTheSameRowsAndOrderAsTheWholeOnes) {
  const Dataset part = Dataset::open(reduced().data.training(), pool),
                whole = Dataset::open(tiny_experiment().data.training(), pool);
  EXPECT_EQ(part.selection_hash(), whole.selection_hash());
  ASSERT_EQ(part.size(), whole.size());
  for (int g = 0; g < part.size(); ++g) {
    EXPECT_LT(part.graph(g).nodes, whole.graph(g).nodes);
    EXPECT_EQ(part.entry(g).nodes, whole.graph(g).nodes);
    const std::int64_t rows[] = {1, 0};
    EXPECT_EQ(part.slate(g, rows).states, whole.slate(g, rows).states);
    EXPECT_EQ(part.slate(g, rows).targets, whole.slate(g, rows).targets);
  }
}

TEST_F(ReducedGraphs, TrainToTheSameBitsForAnyNumberOfThreads) {
  const std::uint64_t one = run(reduced(), folder / "one", 1).parameter_hash;
  EXPECT_EQ(run(reduced(), folder / "two", 2).parameter_hash, one);
  EXPECT_NE(run(tiny_experiment({"train.steps=3"}), folder / "whole").parameter_hash, one);
}

// What `train` said of the validation split, `evaluate` says again; `rank` gives the same scores.
TEST_F(ReducedGraphs, AreWhatARunIsScoredOnWhereverItIs) {
  const TrainOutcome outcome = run(reduced({"ensemble.folds=none"}), folder / "run");
  const std::vector<TrainedRun> runs = {open_run(folder / "run")};
  const auto results = score_runs(
      runs, {.means = true, .judgement = {{CombinationRule::mean}, /*keep_all=*/true}}, context);
  ASSERT_TRUE(outcome.evaluation && results[0].evaluation);
  EXPECT_EQ(results[0].evaluation->member_means(), outcome.evaluation->member_means());

  const DataConfig& data = runs[0].experiment.data;
  const auto npz = npz_of(data.collection, results[0].graphs[0]);
  const ModuleRanking ranking = rank_module(read_module(npz, data.collection, data.reduction), runs,
                                            {CombinationRule::mean}, context);
  for (const auto& config : ranking.ranking) {
    const double expected = results[0].mean[0][config.configs[0]];
    EXPECT_NEAR(config.score, expected, 1e-6 * std::abs(expected));
  }
  EXPECT_THROW(
      rank_module(read_module(npz, data.collection), runs, {CombinationRule::mean}, context),
      std::invalid_argument);
}

TEST_F(ReducedGraphs, AreNotMixedWithWholeOnes) {
  run(reduced({"ensemble.folds=none"}), folder / "part");
  run(tiny_experiment({"train.steps=3", "ensemble.folds=none"}), folder / "whole");
  const std::vector<TrainedRun> runs = {open_run(folder / "part"), open_run(folder / "whole")};
  EXPECT_THAT(test::message_of<Error>([&] { score_runs(runs, {}, context); }),
              HasSubstr("data.reduce: none"));
}

// Runs that see the same nodes where they score, whatever they train on, with config edges and
// without. Each has the bits that it has alone, in any order.
TEST_F(ReducedGraphs, AreScoredTogetherWhereTheSameNodesAreScored) {
  const char* own[] = {
      "seed.init=2",
      "model.blocks=[{layer: sage, width: 5, directions: [config_consumer_to_producer]}]",
      "data.reduce={max_nodes: 15, drawn: trained, sample: random}"};
  std::vector<TrainedRun> runs;
  for (const char* key : own) {
    const auto path = folder / fmt::format("run{}", runs.size());
    run(tiny_experiment({"train.steps=3", "ensemble={members: 1, folds: none}",
                         "model={encoder: {width: 6}, blocks: [{layer: sage, width: 5}], "
                         "readout: {pool: sum}}",
                         key}),
        path);
    runs.push_back(open_run(path));
  }
  const auto scores = [&](const std::vector<TrainedRun>& given) {
    const auto file = folder / "scores.h5";
    const auto results = score_runs(
        given, {.judgement = {{CombinationRule::mean}, /*keep_all=*/true}, .scores = file},
        context);
    return std::pair(PredictionsFile(file).read(0).scores, results[0].graphs[0]);
  };
  const auto ranked = [&](const std::vector<TrainedRun>& given) {
    const Collection& collection = given[0].experiment.data.collection;
    const Module module = read_module(npz_of(collection, scores(given).second), collection,
                                      scored_reduction(pointers(given)));
    std::map<std::int64_t, double> score;
    for (const auto& config : rank_module(module, given, {CombinationRule::mean}, context).ranking)
      score[config.configs.front()] = config.score;
    return score;
  };
  std::vector<std::map<std::int64_t, double>> ranked_alone;
  for (const TrainedRun& run : runs) ranked_alone.push_back(ranked({run}));
  for (const std::array<std::size_t, 3> order : {std::array<std::size_t, 3>{0, 1, 2}, {2, 0, 1}}) {
    const std::vector<TrainedRun> given = {runs[order[0]], runs[order[1]], runs[order[2]]};
    const auto together = scores(given).first;
    for (std::size_t i = 0; i < order.size(); ++i)
      EXPECT_EQ(together[i], scores({given[i]}).first[0]) << "run " << order[i];
    for (const auto& [config, score] : ranked(given)) {
      double sum = 0;
      for (const auto& alone : ranked_alone) sum += alone.at(config);
      EXPECT_NEAR(score, sum / 3, 1e-12 * std::abs(sum));
    }
  }
}

// Nodes are drawn for a slate of a step, so a run that stopped draws them again.
TEST_F(ReducedGraphs, AreDrawnAgainAlikeAfterAStop) {
  const Experiment drawn = tiny_experiment(
      {"data.reduce={max_nodes: 15, sample: random, config_weight: 2}", "train.steps=5"});
  const std::uint64_t whole = run(drawn, folder / "whole").parameter_hash;
  run(drawn, folder / "stopped", 1, false, stop_after(2));
  EXPECT_EQ(run(drawn, folder / "stopped", 2, true).parameter_hash, whole);
}

// The first of several draws is that of every other scoring; any draw is the same for any number of
// threads.
TEST_F(ReducedGraphs, AreScoredWithSeveralDrawsOfNodes) {
  const TrainOutcome outcome =
      run(tiny_experiment({"data.reduce={max_nodes: 15}", "ensemble.folds=none"}), folder / "run");
  const std::vector<TrainedRun> runs = {open_run(folder / "run")};
  const auto scored = [&](JobContext& with) {
    return score_runs(runs, {.judgement = {{CombinationRule::mean}, /*keep_all=*/true}, .draws = 3},
                      with)
        .front();
  };
  const CollectionResult result = scored(context);
  ASSERT_TRUE(outcome.evaluation && result.evaluation);
  EXPECT_EQ(result.evaluation->member_means(), outcome.evaluation->member_means());
  ASSERT_EQ(result.more_draws.size(), 2u);
  EXPECT_NE(result.more_draws[0].member_means(), result.evaluation->member_means());
  EXPECT_NE(result.more_draws[1].member_means(), result.more_draws[0].member_means());

  OneRank alone;
  const CollectionResult again = scored(alone.context);
  for (std::size_t d = 0; d < 2; ++d)
    EXPECT_EQ(again.more_draws[d].member_means(), result.more_draws[d].member_means());
}

TEST_F(ReducedGraphs, AreShownByTheForecast) {
  EXPECT_THAT(plan_work(reduced({"train.last_evaluation=none"}), {1}, context).text,
              ::testing::ContainsRegex("[0-9]+ nodes of [0-9]+"));
}

TEST(DataReduce, NamesMistakes) {
  const auto mistake = [](std::vector<std::string> overrides) {
    return test::message_of<Error>([&] { tiny_experiment(std::move(overrides)); });
  };
  EXPECT_THAT(mistake({"data.reduce={keep: neighbours}"}), HasSubstr("config_neighbours"));
  EXPECT_THAT(mistake({"data.reduce={hops: 2}"}), HasSubstr("hops"));
  EXPECT_THAT(mistake({"data.reduce={keep: config_neighbours, hops: 0}"}), HasSubstr("hops"));
  EXPECT_THAT(mistake({"data.reduce={keep: config_neighbours, direction: up}"}),
              HasSubstr("to_producer"));
  EXPECT_THAT(mistake({"data.reduce={keep: config_neighbours, edges: some}"}),
              HasSubstr("touching_config"));
  EXPECT_THAT(mistake({"data.reduce={max_nodes: -1}"}), HasSubstr("max_nodes"));
  EXPECT_THAT(mistake({"data.reduce={sample: random}"}), HasSubstr("max_nodes"));
  EXPECT_THAT(mistake({"data.reduce={max_nodes: 5, sample: some}"}), HasSubstr("window"));
  EXPECT_THAT(mistake({"data.reduce={max_nodes: 5, config_weight: 2}"}), HasSubstr("random"));
  EXPECT_THAT(mistake({"data.reduce={max_nodes: 5, sample: random, config_weight: 0}"}),
              HasSubstr("config_weight"));
  EXPECT_THAT(mistake({"data.reduce={max_nodes: 5}", "data.collection=tile:xla",
                       "model.preset=latenciaga_tile"}),
              HasSubstr("layout graphs alone"));
  const std::string consumers = "data.reduce={keep: config_neighbours, direction: to_consumer}";
  EXPECT_THAT(mistake({consumers, "model.readout.violation_ratio=kernel"}),
              HasSubstr("looks at the operands"));
  EXPECT_EQ(mistake({consumers, "model.readout.violation_ratio=output"}), "");
  EXPECT_EQ(mistake({kReduce, "model.readout.violation_ratio=kernel"}), "");
  EXPECT_THAT(mistake({kReduce, "data.collection=tile:xla", "model.preset=latenciaga_tile"}),
              HasSubstr("no configurable nodes"));
}

}  // namespace
}  // namespace tpudist::test
