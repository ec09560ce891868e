// The predictions that a run writes when it has been trained.

#include "train/loop/run_predictions.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/file_system.hpp"
#include "results/records/predictions_file.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/loop/forecast.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::Not;

namespace fs = std::filesystem;

nlohmann::json scores_of(const fs::path& folder) {
  return nlohmann::json::parse(read_text_file(folder / "scores.json"));
}

using RunPredictions = TrainTest;

// The filter says which rows are trained on; out of fold all graphs are scored.
TEST_F(RunPredictions, AreAlsoOfGraphsThatTheEntropyFilterLeavesOut) {
  const std::string shards = "data.shards=" + test::make_tiny_shards(folder.path(), 300).string();
  const Experiment all = tiny_experiment({shards, "predictions.rows=all"});
  const Experiment filtered =
      tiny_experiment({shards, "predictions.rows=all", "data.entropy_filter=0.1"});
  run(all, folder / "all");
  run(filtered, folder / "filtered");
  const auto graphs = [&](const char* name) {
    std::set<std::string> names;
    const PredictionsFile file(folder / name / "predictions.h5");
    for (const PredictionEntry& graph : file.header().graphs) names.insert(graph.name);
    return names;
  };
  ThreadPool pool(1);
  ASSERT_THAT(Dataset::open(filtered.training_data(), pool).left_out(), Not(IsEmpty()));
  EXPECT_EQ(graphs("filtered"), graphs("all"));
}

TEST_F(RunPredictions, AreOfTheGraphsThatMembersHoldOutAndOfTheValidationSplit) {
  const Experiment experiment = tiny_experiment({"predictions.rows=all"});
  const TrainOutcome outcome = run(experiment, folder / "run");
  const PredictionsFile file(folder / "run/predictions.h5");
  const PredictionsHeader& header = file.header();
  EXPECT_EQ(header.collection, "layout:xla:random");
  ASSERT_EQ(header.members.size(), 3u);  // members 0 and 2 hold out fold 0, member 1 holds out 1
  EXPECT_EQ(header.runs.front().step, 6);
  EXPECT_EQ(header.runs.front().parameter_hash, outcome.parameter_hash);
  EXPECT_EQ(header.runs.front().settings_hash, experiment.numbers_hash);
  EXPECT_EQ(header.runs.front().folds, 2);

  const FoldTable folds = training_folds(experiment.ensemble, experiment.data.training());
  int train = 0, valid = 0;
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& graph = header.graphs[g];
    const bool is_train = graph.split == "train";
    ++(is_train ? train : valid);
    EXPECT_EQ(graph.rows, graph.configs);
    if (is_train) EXPECT_EQ(graph.fold, folds.find(graph.name)->fold);
    const PredictionRows predictions = file.read(static_cast<int>(g));
    for (int m = 0; m < 3; ++m) {
      EXPECT_EQ(graph.held_out[m], !is_train || graph.fold == m % 2);
      if (graph.held_out[m])
        EXPECT_FALSE(std::isnan(predictions.scores[m].front()));
      else
        EXPECT_THAT(predictions.scores[m], Each(IsNan()));
    }
  }
  EXPECT_EQ(train, 5);
  EXPECT_EQ(valid, 2);
}

TEST_F(RunPredictions, AgreeWithTheEvaluation) {
  const Experiment experiment = tiny_experiment({"predictions.rows=all"});
  const TrainOutcome outcome = run(experiment, folder / "run");
  const PredictionsFile file(folder / "run/predictions.h5");
  double sum = 0;
  int graphs = 0;
  for (std::size_t g = 0; g < file.header().graphs.size(); ++g) {
    if (file.header().graphs[g].split != "valid") continue;
    const PredictionRows predictions = file.read(static_cast<int>(g));
    sum +=
        primary_metric(file.header().collection).of(predictions.scores[1], predictions.targets());
    ++graphs;
  }
  EXPECT_NEAR(sum / graphs, outcome.evaluation->member_means()[1], 1e-4);

  const nlohmann::json scores = scores_of(folder / "run");
  EXPECT_TRUE(scores.contains("ensemble"));
  const nlohmann::json& members = scores.at("out_of_fold").at("members");
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[2].at("number"), 2);
  EXPECT_EQ(members[2].at("fold"), 0);
  EXPECT_EQ(members[2].at("score"), outcome.out_of_fold[2].score);
}

TEST_F(RunPredictions, DrawTheSameRowsInEveryRun) {
  run(tiny_experiment({"predictions.rows=7", "train.last_evaluation=none"}), folder / "a");
  run(tiny_experiment({"predictions.rows=7", "seed={init: 5, order: 6}"}), folder / "b");
  const PredictionsFile a(folder / "a/predictions.h5"), b(folder / "b/predictions.h5");
  for (std::size_t g = 0; g < a.header().graphs.size(); ++g) {
    const auto rows = a.read(static_cast<int>(g)).configs;
    EXPECT_EQ(rows.size(), 7u);
    EXPECT_EQ(rows, b.read(static_cast<int>(g)).configs);
  }
  EXPECT_EQ(a.header().runs[0].variant_hash, b.header().runs[0].variant_hash);
  EXPECT_NE(a.header().runs[0].settings_hash, b.header().runs[0].settings_hash);
  // Without an evaluation scores.json holds the scores out of fold, and the parameters' hash.
  EXPECT_FALSE(scores_of(folder / "a").contains("ensemble"));
  EXPECT_TRUE(scores_of(folder / "a").contains("out_of_fold"));
  EXPECT_TRUE(scores_of(folder / "a").contains("parameters"));
}

TEST_F(RunPredictions, AreTheSameForAnyNumberOfThreadsAndForRunsOfSomeMembers) {
  run(tiny_experiment({"predictions.rows=all"}), folder / "all", 2);
  run(tiny_experiment({"predictions.rows=all", "ensemble.first_member=1", "ensemble.members=1"}),
      folder / "one");
  const PredictionsFile all(folder / "all/predictions.h5"), one(folder / "one/predictions.h5");
  for (std::size_t h = 0; h < one.header().graphs.size(); ++h) {
    const PredictionEntry& graph = one.header().graphs[h];
    for (std::size_t g = 0; g < all.header().graphs.size(); ++g) {
      if (all.header().graphs[g].name != graph.name || all.header().graphs[g].split != graph.split)
        continue;
      EXPECT_EQ(all.read(static_cast<int>(g)).scores[1], one.read(static_cast<int>(h)).scores[0]);
    }
  }
}

TEST_F(RunPredictions, AreOfTheValidationSplitAloneWithoutFolds) {
  run(tiny_experiment({"predictions.rows=all", "ensemble.folds=none", "ensemble.vary=[init]"}),
      folder / "run");
  const PredictionsFile file(folder / "run/predictions.h5");
  for (const PredictionEntry& graph : file.header().graphs) EXPECT_EQ(graph.split, "valid");
  EXPECT_FALSE(scores_of(folder / "run").contains("out_of_fold"));
}

TEST_F(RunPredictions, CanBeWrittenByResumingARunThatHasEnded) {
  run(tiny_experiment(), folder / "run");
  EXPECT_FALSE(fs::exists(folder / "run/predictions.h5"));
  write_file_atomically(folder / "run/predictions.h5.1-2-3.tmp", "of a process that was killed");
  run(tiny_experiment({"predictions.rows=5"}), folder / "run", 1, /*resume=*/true);
  EXPECT_TRUE(fs::exists(folder / "run/predictions.h5"));
  EXPECT_FALSE(fs::exists(folder / "run/predictions.h5.1-2-3.tmp"));
}

// Names of what progress was told of.
struct Titles : NoProgress {
  void start(std::string_view title, std::int64_t, std::string_view) override {
    list.emplace_back(title);
  }
  std::vector<std::string> list;
};

TEST_F(RunPredictions, AreWhatTheLastEvaluationGoesByWhereBothTakeTheSameRows) {
  const auto world = make_self_communicator();
  ThreadPool pool(1, use_one_thread_per_worker);
  const auto train_with = [&](const std::string& name, std::vector<std::string> overrides) {
    Titles titles;
    JobContext context{*world, pool, NodeTopology{}, titles};
    const TrainOutcome outcome = train(tiny_experiment(std::move(overrides)), folder / name, false,
                                       context, [] { return false; });
    return std::pair(titles.list, outcome.evaluation->member_means());
  };
  const auto [once, means] = train_with("once", {"predictions.rows=all"});
  EXPECT_THAT(once, ::testing::ElementsAre("train", "predict"));
  const auto [twice, sampled] = train_with(
      "twice", {"predictions.rows=all", "train.last_evaluation=sampled", "train.evaluate_rows=5"});
  EXPECT_THAT(twice, ::testing::ElementsAre("train", "evaluate", "predict"));
  const auto [alone, expected] = train_with("alone", {});
  EXPECT_THAT(alone, ::testing::ElementsAre("train", "evaluate"));
  EXPECT_EQ(means, expected);
  nlohmann::json with = scores_of(folder / "once"), without = scores_of(folder / "alone");
  with.erase("out_of_fold");
  EXPECT_EQ(with, without);
  const auto [rows, few] = train_with(
      "rows", {"predictions.rows=5", "train.last_evaluation=sampled", "train.evaluate_rows=5"});
  EXPECT_THAT(rows, ::testing::ElementsAre("train", "predict"));
  EXPECT_EQ(few, sampled);
}

TEST_F(RunPredictions, AreStoppedOnRequestAndMadeByResuming) {
  const Experiment experiment = tiny_experiment({"predictions.rows=all"});
  run(experiment, folder / "whole");
  // At six steps, and before each part of the predictions
  const TrainOutcome stopped = run(experiment, folder / "run", 1, false, stop_after(7));
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.steps, 6);
  EXPECT_FALSE(stopped.evaluation);
  for (const auto& entry : fs::directory_iterator(folder / "run"))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("predictions.h5")));
  EXPECT_FALSE(fs::exists(folder / "run/scores.json"));
  const TrainOutcome resumed = run(experiment, folder / "run", 1, /*resume=*/true);
  EXPECT_FALSE(resumed.stopped);
  EXPECT_EQ(scores_of(folder / "run"), scores_of(folder / "whole"));
  EXPECT_EQ(read_text_file(folder / "run/predictions.h5"),
            read_text_file(folder / "whole/predictions.h5"));
}

TEST_F(RunPredictions, AreInTheDryRun) {
  OneRank alone;
  EXPECT_THAT(plan_work(tiny_experiment({"predictions.rows=5"}), {1}, alone.context).text,
              HasSubstr("predictions  35 rows"));
}

}  // namespace
}  // namespace tpudist::test
