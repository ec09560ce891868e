// Folds over the training and the validation graphs: ensemble.fold_over: train+valid.

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "results/records/predictions_file.hpp"
#include "results/scores/judgement.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/collection_scores.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNan;

namespace fs = std::filesystem;

// Members 0 and 2 hold out fold 0, member 1 holds out fold 1. The two validation graphs are of
// different families, and this seed puts them into different folds.
Experiment both_splits(std::vector<std::string> overrides = {},
                       const std::string& seed = "ensemble.fold_seed=4") {
  overrides.insert(overrides.end(), {"ensemble.fold_over=train+valid", seed});
  return tiny_experiment(std::move(overrides));
}

CollectionResult evaluate(const fs::path& folder, const ScoreRequest& request = {}) {
  const std::vector<TrainedRun> runs{open_run(folder)};
  OneRank alone;
  return score_runs(runs, request, alone.context).front();
}

using FoldOver = TrainTest;

TEST_F(FoldOver, MembersTrainOnBothSplitsButTheirFold) {
  const Experiment experiment = both_splits();
  const OneRankSetup setup(experiment);
  ASSERT_EQ(setup.data.size(), 7);
  const std::vector<int> folds = graph_folds(setup.folds, setup.data);
  std::set<std::string> splits_of_fold_0;
  for (int g = 0; g < 7; ++g) {
    EXPECT_EQ(setup.data.entry(g).split, g < 5 ? "train" : "valid");
    if (folds[g] == 0) splits_of_fold_0.insert(setup.data.entry(g).split);
  }
  EXPECT_EQ(splits_of_fold_0, (std::set<std::string>{"train", "valid"}));
  // A member takes part in the slates of the graphs that it does not hold out.
  for (std::int64_t step = 0; step < 6; ++step) {
    const BatchPlan plan = setup.planner.plan(step);
    for (std::size_t i = 0; i < plan.slates.size(); ++i) {
      const int fold = folds[plan.slates[i].graph];
      for (int m = 0; m < 3; ++m) EXPECT_EQ(plan.weights[m][i] > 0, fold != m % 2);
    }
  }
}

TEST_F(FoldOver, ValidationScoresAreOfTheMembersThatNeverSawAGraph) {
  const TrainOutcome outcome =
      run(both_splits({"predictions.rows=all", "train.evaluate_every=3"}), folder / "run");
  ASSERT_TRUE(outcome.evaluation);
  EXPECT_TRUE(outcome.evaluation->held_out_only);

  const PredictionsFile file(folder / "run/predictions.h5");
  int valid = 0;
  for (std::size_t g = 0; g < file.header().graphs.size(); ++g) {
    const PredictionEntry& graph = file.header().graphs[g];
    ASSERT_GE(graph.fold, 0);
    const PredictionRows predictions = file.read(static_cast<int>(g));
    for (int m = 0; m < 3; ++m) {
      EXPECT_EQ(graph.held_out[m], graph.fold == m % 2);
      if (!graph.held_out[m]) EXPECT_THAT(predictions.scores[m], Each(IsNan()));
    }
    if (graph.split != "valid") continue;
    // The evaluation has the graphs in the order of their names, as the file has them fold by fold.
    for (std::size_t e = 0; e < outcome.evaluation->ensemble.size(); ++e) {
      if (outcome.evaluation->ensemble[e].name != graph.name) continue;
      ++valid;
      for (int m = 0; m < 3; ++m) {
        const GraphMetrics& scores = outcome.evaluation->members[m][e];
        EXPECT_EQ(std::isnan(scores.kendall_tau), graph.fold != m % 2);
        if (graph.fold == m % 2)
          EXPECT_NEAR(
              scores.kendall_tau,
              primary_metric("layout:xla:random").of(predictions.scores[m], predictions.targets()),
              1e-4);
      }
      EXPECT_FALSE(std::isnan(outcome.evaluation->ensemble[e].kendall_tau));
    }
  }
  EXPECT_EQ(valid, 2);

  const auto scores = nlohmann::json::parse(read_text_file(folder / "run/scores.json"));
  EXPECT_EQ(scores.at("held_out_only"), true);
  EXPECT_EQ(scores.at("out_of_fold").at("members").size(), 3u);
}

TEST_F(FoldOver, EvaluatingTheRunScoresWhatTheTrainingScored) {
  const TrainOutcome outcome = run(both_splits(), folder / "run");
  const CollectionResult result = evaluate(folder / "run");
  ASSERT_TRUE(result.evaluation);
  EXPECT_TRUE(result.evaluation->held_out_only);
  EXPECT_EQ(result.evaluation->member_means(), outcome.evaluation->member_means());
  EXPECT_THAT(evaluation_table(*result.evaluation), HasSubstr("never trained on it"));

  fs::remove(folder / "run/folds.yaml");
  EXPECT_THAT(test::message_of<ConfigError>([&] { evaluate(folder / "run"); }),
              HasSubstr("folds.yaml"));
}

TEST_F(FoldOver, AJudgementHasColumnsOnBothSplits) {
  run(both_splits({"predictions.rows=all", "ensemble.members=4"}), folder / "run");
  const PredictionsFile file(folder / "run/predictions.h5");
  JudgementOptions options;
  options.keep_all = true;
  const Judgement judgement = judge(file, options);
  ASSERT_EQ(judgement.tables.size(), 2u);
  EXPECT_EQ(judgement.tables[0].title, "training graphs, out of fold");
  EXPECT_EQ(judgement.tables[1].title, "valid split, out of fold");
  for (const TableJudgement& table : judgement.tables) EXPECT_EQ(table.columns.size(), 2u);
}

TEST_F(FoldOver, ARunOfSomeMembersGivesThemTheirBits) {
  const TrainOutcome all = run(both_splits(), folder / "all");
  const TrainOutcome one =
      run(both_splits({"ensemble.first_member=1", "ensemble.members=1"}), folder / "one");
  EXPECT_EQ(one.evaluation->member_means()[0], all.evaluation->member_means()[1]);
}

// Two of three members over three folds: the graphs of the third fold are known to both.
TEST_F(FoldOver, ASubmissionLacksGraphsThatNoMemberMayScore) {
  const auto world = make_self_communicator();
  ThreadPool pool(1);
  int left_out = 0;  // validation graphs of the third fold
  std::string seed;
  for (int i = 1; left_out == 0; ++i) {
    seed = "ensemble.fold_seed=" + std::to_string(i);
    const Experiment experiment = both_splits({"ensemble.folds=3"}, seed);
    const TrainingSetup setup(experiment, experiment.training_data(), pool, -1, 1, *world);
    const std::vector<int> folds = graph_folds(setup.folds, setup.data);
    for (int g = 0; g < setup.data.size(); ++g)
      left_out += setup.data.entry(g).split == "valid" && folds[g] == 2;
  }
  for (const int members : {3, 2}) {
    const fs::path run_folder = folder / std::to_string(members);
    run(both_splits({"ensemble.folds=3", "ensemble.members=" + std::to_string(members)}, seed),
        run_folder);
    const Submission submission =
        make_submission({evaluate(run_folder, {.split = "valid", .means = true})});
    EXPECT_EQ(static_cast<int>(submission.rows().size()), members == 3 ? 2 : 2 - left_out);
  }
}

TEST_F(FoldOver, WhatCannotBeSplitIsRefused) {
  EXPECT_THAT(test::message_of<ConfigError>(
                  [&] { run(both_splits({"data.exclude.valid=['*']"}), folder / "run"); }),
              AllOf(HasSubstr("valid is left"), HasSubstr("ensemble.fold_over: train+valid")));
  EXPECT_FALSE(fs::exists(folder / "run/config.yaml"));
  EXPECT_THAT(test::message_of<ConfigError>([] {
                both_splits({"ensemble.folds=none", "ensemble.vary=[init]"});
              }),
              HasSubstr("give `folds`"));
  EXPECT_THAT(test::message_of<ConfigError>([] {
                both_splits({"train.evaluate_every=1", "train.early_stop.patience=2"});
              }),
              HasSubstr("early_stop"));
}

}  // namespace
}  // namespace tpudist::test
