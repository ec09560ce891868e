#include "train/scoring/module_ranking.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/loading/metis_segments.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/kernels/cpu_process.hpp"
#include "statistics/ranking/metrics.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/collection_scores.hpp"

namespace tpudist::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TrainedRun short_run(const std::filesystem::path& folder, std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.end(),
                   {"ensemble.folds=none", "train.steps=3", "train.last_evaluation=none"});
  run(tiny_experiment(overrides), folder);
  return open_run(folder);
}

TrainedRun tile_run(const std::filesystem::path& folder) {
  return short_run(folder, {"data.collection=tile:xla", "model.preset=latenciaga_tile"});
}

class ModuleRankingTest : public TrainTest, protected OneRank {
 protected:
  ModuleRankingTest() : OneRank(2) {}

  // The source of a graph of the tiny shards.
  static std::filesystem::path npz(const std::string& collection, const std::string& split,
                                   const std::string& graph) {
    return test::tiny_shards().parent_path() / "npz" / Collection{collection}.folder() / split /
           (graph + ".npz");
  }

  ModuleRanking rank(const std::filesystem::path& file, const std::vector<TrainedRun>& runs,
                     const Combination& combination = {CombinationRule::mean}) {
    return rank_module(read_module(file, runs.front().experiment.data.collection), runs,
                       {combination, /*keep_all=*/false}, context);
  }

  // Ranks the file of each graph of a split, and compares with what scoring its shards gives.
  void expect_like_shards(const std::vector<TrainedRun>& runs, const std::string& split,
                          const Combination& combination) {
    const auto results = score_runs(
        runs, {.split = split, .means = true, .judgement = {combination, /*keep_all=*/true}},
        context);
    const CollectionResult& expected = results.front();
    ASSERT_FALSE(expected.graphs.empty());
    for (std::size_t g = 0; g < expected.graphs.size(); ++g) {
      SCOPED_TRACE(expected.graphs[g]);
      const ModuleRanking ranking =
          rank(npz(expected.collection, split, expected.graphs[g]), runs, combination);
      std::vector<double> scores(expected.mean[g].size());
      std::vector<std::int32_t> order;
      for (const auto& config : ranking.ranking) {
        order.push_back(static_cast<std::int32_t>(config.configs.front()));
        for (const std::int64_t c : config.configs) {
          scores[c] = config.score;
        }
      }
      EXPECT_EQ(scores, expected.mean[g]);  // the same bits
      // The order is that of the submission, without repetitions of equal configurations.
      std::vector<std::int32_t> distinct = ranking_of(expected.mean[g]);
      std::erase_if(distinct, [&](std::int32_t c) { return !std::ranges::count(order, c); });
      EXPECT_EQ(order, distinct);
      if (expected.evaluation) {
        EXPECT_EQ(ranking.kendall_tau, expected.evaluation->ensemble[g].kendall_tau);
      } else {
        EXPECT_TRUE(std::isnan(ranking.kendall_tau));
      }
    }
  }

  std::string first_valid_graph(const TrainedRun& run) {
    return score_runs({run}, {.split = "valid"}, context).front().graphs.front();
  }
};

TEST_F(ModuleRankingTest, GivesTheScoresAndTheOrderOfTheConvertedFile) {
  const std::vector<TrainedRun> runs{short_run(folder / "run")};
  expect_like_shards(runs, "valid", {CombinationRule::mean});
  expect_like_shards(runs, "test", {CombinationRule::mean});
}

TEST_F(ModuleRankingTest, WarnsOfAnotherMetisThanOfTheTraining) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  const std::vector<std::string> cut{"data.segments={by: metis, nodes: 15}",
                                     "loss.list_mle.clip_norm=.inf"};
  std::vector<TrainedRun> runs{short_run(folder / "run", cut)};
  const GraphReduction reduction = runs[0].experiment.data.reduction;
  ASSERT_TRUE(runs[0].metis_hash);
  EXPECT_EQ(*runs[0].metis_hash, *metis_hash(reduction));
  const auto warnings = [&] {
    ::testing::internal::CaptureStderr();
    set_up_logging(0, 1);  // on standard error
    const auto scored =
        score_runs(runs, {.split = "valid", .judgement = {.keep_all = true}}, context);
    const auto file = npz("layout:xla:random", "valid", scored.front().graphs.front());
    rank_module(read_module(file, {"layout:xla:random"}, reduction), runs, {}, context);
    spdlog::default_logger()->flush();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warnings(), "");
  ++*runs[0].metis_hash;
  const std::string told = warnings(),
                    line = "run: the METIS of its training cut graphs into other";
  EXPECT_THAT(told, ContainsRegex(line + ".*\n.*" + line));
  runs[0].metis_hash.reset();  // of an older program
  EXPECT_EQ(warnings(), "");
  EXPECT_FALSE(short_run(folder / "whole").metis_hash);
}

TEST_F(ModuleRankingTest, RanksByAllMembersOfAllRunsAndAnyRule) {
  const std::vector<TrainedRun> runs{
      short_run(folder / "two", {"ensemble.members=2"}),
      short_run(folder / "one", {"ensemble.members=1", "optimizer.lr=0.01"})};
  expect_like_shards(runs, "valid", {CombinationRule::z_score});
  expect_like_shards(runs, "valid", {CombinationRule::softmax, 0.5});
}

TEST_F(ModuleRankingTest, RanksTileKernels) {
  expect_like_shards({tile_run(folder / "run")}, "valid", {CombinationRule::mean});
}

TEST_F(ModuleRankingTest, LeavesOutMembersThatFailedOrWhoseScoresAreNotFinite) {
  std::vector<TrainedRun> runs{short_run(folder / "run")};
  const auto file = npz("layout:xla:random", "valid", first_valid_graph(runs[0]));
  const auto length = static_cast<std::ptrdiff_t>(runs[0].flat.size() / 3);
  runs[0].use[0] = false;
  std::fill_n(runs[0].flat.begin() + length, length, std::nanf(""));
  const ModuleRanking ranking = rank(file, runs, {CombinationRule::z_score});
  ASSERT_EQ(ranking.members.size(), 3u);
  EXPECT_THAT(ranking.members[0].why_left_out, HasSubstr("in training"));
  EXPECT_THAT(ranking.members[1].why_left_out, HasSubstr("not finite"));
  EXPECT_EQ(ranking.members[2].why_left_out, "");
  for (const auto& config : ranking.ranking) {
    EXPECT_TRUE(std::isfinite(config.score));
    EXPECT_TRUE(std::isnan(config.spread.deviation));  // of one member
    EXPECT_EQ(config.spread.best_rank, config.spread.worst_rank);
  }
  runs[0].use[2] = false;
  EXPECT_THROW(rank(file, runs), Error);
}

// As predict does, which sees no run times in a test split.
TEST_F(ModuleRankingTest, RejectsTheMembersThatPredictRejects) {
  std::vector<TrainedRun> runs{short_run(folder / "run")};
  runs[0].losses = {{2, 1, 0.1}, {1, 2, 0.1}, {2, 1, 0.1}};
  const auto predicted = score_runs(runs, {.split = "test", .means = true}, context);
  EXPECT_THAT(predicted[0].judgement.used, ::testing::ElementsAre(true, false, true));
  const auto file = npz("layout:xla:random", "test", predicted[0].graphs[0]);
  const ModuleRanking ranking = rank(file, runs, {CombinationRule::z_score});
  EXPECT_THAT(ranking.members[1].why_left_out, HasSubstr("training loss did not fall"));
  for (const auto& config : ranking.ranking)
    EXPECT_EQ(config.score, predicted[0].mean[0][config.configs[0]]);
  const Module module = read_module(file, runs[0].experiment.data.collection);
  EXPECT_EQ(rank_module(module, runs, {{}, /*keep_all=*/true}, context).members[1].why_left_out,
            "");
}

TEST_F(ModuleRankingTest, EqualConfigurationsAreListedOnce) {
  const std::vector<TrainedRun> runs{short_run(folder / "run")};
  const auto graph = first_valid_graph(runs[0]);
  const Module module =
      read_module(npz("layout:xla:random", "valid", graph), runs[0].experiment.data.collection);
  const ModuleRanking ranking = rank_module(module, runs, {}, context);
  const auto& group = module.dataset.run_times(0).group;
  std::size_t rows = 0;
  for (const auto& config : ranking.ranking) {
    rows += config.configs.size();
    EXPECT_TRUE(std::ranges::is_sorted(config.configs));
    for (const std::int64_t c : config.configs) EXPECT_EQ(group[c], group[config.configs.front()]);
  }
  EXPECT_EQ(rows, group.size());
  EXPECT_EQ(std::ssize(ranking.ranking), *std::ranges::max_element(group) + 1);
}

TEST_F(ModuleRankingTest, RefusesRunsOfTheOtherKind) {
  const std::vector<TrainedRun> runs{short_run(folder / "layout"), tile_run(folder / "tile")};
  const auto graph = first_valid_graph(runs[0]);
  EXPECT_THROW(rank(npz("layout:xla:random", "valid", graph), runs), ConfigError);
}

}  // namespace
}  // namespace tpudist::test
