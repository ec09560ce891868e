// data.collection as a list: collections that are trained and scored on together.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "core/error.hpp"
#include "data/schema/collection.hpp"
#include "results/records/predictions_file.hpp"
#include "results/scores/run_record.hpp"
#include "tests/data/npz/own_features.hpp"
#include "tests/support/converted.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/collection_scores.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kBothSplits = "ensemble.fold_over=train+valid";
constexpr const char* kBoth = "data.collection=[layout:xla:random, layout:xla:default]";

Experiment merged(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.end(), {kBoth, "train.steps=4"});
  return tiny_experiment(std::move(overrides));
}

class MergedCollections : public ::testing::Test {
 protected:
  Dataset open(const Experiment& experiment) {
    return Dataset::open(experiment.training_data(), pool_);
  }

  // Empty where the training can begin.
  std::string mistake_of_training(std::vector<std::string> overrides) {
    const Experiment experiment = merged(std::move(overrides));
    const auto world = make_self_communicator();
    return test::message_of<ConfigError>(
        [&] { TrainingSetup(experiment, experiment.training_data(), pool_, -1, 1, *world); });
  }

  std::vector<CollectionResult> score(const std::vector<TrainedRun>& runs,
                                      const ScoreRequest& request = {}) {
    const auto world = make_self_communicator();
    NoProgress progress;
    JobContext context{*world, pool_, NodeTopology{}, progress};
    return score_runs(runs, request, context);
  }
  CollectionResult score(const fs::path& run_folder, const ScoreRequest& request = {}) {
    return score(std::vector{open_run(run_folder)}, request).front();
  }

  // Copies the graphs and moves one of a collection from a split to another. Returns its name.
  std::string move_graph(const std::string& collection, const std::string& from,
                         const std::string& to) {
    const fs::path layouts = folder_ / "npz/layout", own = layouts / "xla" / collection;
    fs::create_directories(layouts.parent_path());
    fs::copy(test::tiny_shards().parent_path() / "npz/layout", layouts,
             fs::copy_options::recursive);
    const fs::path file = fs::directory_iterator(own / from)->path().filename();
    fs::rename(own / from / file, own / to / file);
    return file.stem().string();
  }

  // Converts them; the override that takes them.
  std::string moved_shards() { return "data.shards=" + test::convert_npz(folder_.path()).string(); }

  ThreadPool pool_{1};
  TempDir folder_;
};

TEST_F(MergedCollections, HoldTheGraphsOfEachUnderTheirIds) {
  const Experiment experiment = merged();
  EXPECT_EQ(experiment.data.collection.name, "layout:xla:default+layout:xla:random");
  const Dataset both = open(experiment);
  ASSERT_EQ(both.size(), 10);
  int at = 0;
  for (const char* name : {"layout:xla:default", "layout:xla:random"}) {
    const Dataset alone = open(tiny_experiment({std::string("data.collection=") + name}));
    EXPECT_NE(alone.selection_hash(), both.selection_hash());
    for (int g = 0; g < alone.size(); ++g, ++at) {
      EXPECT_EQ(both.graph(at).name, std::string(name) + ":" + alone.graph(g).name);
      ASSERT_EQ(both.rows(at), alone.rows(g));
      const std::int64_t rows[] = {2, 0};
      EXPECT_EQ(both.slate(at, rows).states, alone.slate(g, rows).states);
      EXPECT_EQ(both.slate(at, rows).targets, alone.slate(g, rows).targets);
    }
  }
  const std::string one(graph_of_id(both.graph(0).name)), other(graph_of_id(both.graph(1).name));
  EXPECT_EQ(open(merged({"data.include.train=['" + one + "']"})).size(), 2);
  EXPECT_EQ(open(merged({"data.include.train=['layout:xla:random:" + one + "', '" + other + "']"}))
                .size(),
            3);
  EXPECT_EQ(open(merged({"data.exclude.train=['layout:xla:random:*']"})).size(), 5);
}

TEST_F(MergedCollections, TheirOrderSaysNothing) {
  const Experiment one = merged(),
                   other =
                       tiny_experiment({"data.collection=[layout:xla:default, layout:xla:random]",
                                        "train.steps=4"});
  EXPECT_EQ(other.data.collection.name, one.data.collection.name);
  EXPECT_EQ(other.resolved_yaml, one.resolved_yaml);
  EXPECT_EQ(other.numbers_hash, one.numbers_hash);
  EXPECT_EQ(open(other).selection_hash(), open(one).selection_hash());
  const Experiment single = tiny_experiment({"data.collection=[layout:xla:random]"});
  EXPECT_EQ(single.resolved_yaml, tiny_experiment().resolved_yaml);
  EXPECT_EQ(single.numbers_hash, tiny_experiment().numbers_hash);
}

TEST_F(MergedCollections, AGraphHasOneFoldInAllOfThem) {
  const Experiment experiment = merged();
  const Dataset both = open(experiment);
  const FoldTable table = training_folds(experiment.ensemble, both.options()),
                  alone = training_folds(experiment.ensemble, tiny_experiment().data.training());
  std::map<std::string, std::set<int>> folds_of;
  const std::vector<int> folds = graph_folds(table, both);
  for (int g = 0; g < both.size(); ++g)
    folds_of[std::string(graph_of_id(both.graph(g).name))].insert(folds[g]);
  EXPECT_EQ(folds_of.size(), 5u);
  for (const auto& [name, own] : folds_of) {
    ASSERT_EQ(own.size(), 1u) << name;
    EXPECT_EQ(*own.begin(), alone.find(name)->fold) << name;
  }
}

TEST_F(MergedCollections, AreRefusedWhereTheyCannotBeTrainedOnTogether) {
  const auto mistake = [](const std::string& list) {
    return test::message_of<Error>([&] { tiny_experiment({"data.collection=" + list}); });
  };
  EXPECT_THAT(mistake("[layout:xla:random, tile:xla]"), HasSubstr("layouts and tiles"));
  EXPECT_THAT(mistake("[layout:xla:random, layout:xla:random]"), HasSubstr("is named twice"));
  EXPECT_THAT(mistake("[]"), HasSubstr("names no collection"));
  EXPECT_THAT(mistake("[layout:xla:random, layout]"), HasSubstr("'layout' is not a collection"));
  EXPECT_THAT(mistake("layout:xla:random+layout:xla:default"), HasSubstr("is not a collection"));
  EXPECT_THAT(test::message_of<Error>([&] {
                run(tiny_experiment({"data.collection=[layout:xla:random, layout:xla:other]"}),
                    folder_ / "run");
              }),
              HasSubstr("layout:xla:other has not been converted"));
}

TEST_F(MergedCollections, GraphsOfOtherSchemasAreRefused) {
  test::OwnFeatures{}.write_splits(folder_ / "npz/layout/mine/a");
  test::OwnFeatures{.node_features = 9}.write_splits(folder_ / "npz/layout/mine/b");
  test::OwnFeatures{}.write_splits(folder_ / "npz/layout/mine/c");
  const std::string shards = moved_shards();
  const auto mistake = [&](const std::string& list) {
    return test::message_of<Error>([&] {
      open(tiny_experiment({shards, "data.collection=" + list}));
    });
  };
  EXPECT_EQ(mistake("[layout:mine:a, layout:mine:c]"), "");
  EXPECT_THAT(mistake("[layout:mine:b, layout:mine:a]"),
              AllOf(HasSubstr("the graphs of layout:mine:b have "), HasSubstr("9 node features"),
                    HasSubstr("those asked for have 7 node features")));
}

// A validation graph of random is a training graph of default here.
TEST_F(MergedCollections, NoTrainingGraphOfOneIsScoredInAnother) {
  const std::string graph = move_graph("default", "valid", "train"), shards = moved_shards();
  EXPECT_THAT(mistake_of_training({shards}),
              HasSubstr("layout:xla:default:" + graph + " of the split train is trained on, but " +
                        "layout:xla:random:" + graph + " of the split valid is the same graph: " +
                        "leave it out by data.exclude.train or data.exclude.valid"));
  for (const char* split : {"train", "valid"})
    EXPECT_EQ(mistake_of_training({shards, fmt::format("data.exclude.{}=['{}']", split, graph)}),
              "");
  EXPECT_NE(mistake_of_training({shards, "data.include.valid=['" + graph + "']"}), "");
  EXPECT_EQ(open(merged({shards})).size(), 11);  // it may be scored
  // No graph is read before.
  for (const auto& file : fs::recursive_directory_iterator(folder_ / "shards"))
    if (file.path().extension() == ".h5")
      std::fstream(file.path(), std::ios::in | std::ios::out) << "damaged";
  EXPECT_THAT(mistake_of_training({shards}), HasSubstr("is the same graph"));
}

// Both are trained on, by the members that do not hold out its one fold.
TEST_F(MergedCollections, AGraphOfBothSplitsHasOneFold) {
  const std::string graph = move_graph("default", "valid", "train");
  const Experiment experiment = merged({moved_shards(), kBothSplits, "predictions.rows=all"});
  const Dataset both = open(experiment);
  const FoldTable table = training_folds(experiment.ensemble, both.options());
  const std::vector<int> folds = graph_folds(table, both);
  std::map<std::string, int> fold_of;
  for (int g = 0; g < both.size(); ++g)
    fold_of[both.entry(g).split + " " + both.graph(g).name] = folds[g];
  const std::string trained = "train layout:xla:default:" + graph,
                    scored = "valid layout:xla:random:" + graph;
  ASSERT_TRUE(fold_of.contains(trained) && fold_of.contains(scored));
  EXPECT_EQ(fold_of[trained], fold_of[scored]);

  run(experiment, folder_ / "run");
  EXPECT_EQ(PredictionsFile(folder_ / "run/predictions.h5").header().graphs.size(), fold_of.size());
  for (const char* split : {"train", "valid"}) {
    const fs::path scores = folder_ / (std::string(split) + ".h5");
    const CollectionResult result = score(folder_ / "run", {.split = split, .scores = scores});
    EXPECT_EQ(result.evaluation->held_out_only, split == std::string("valid"));
    const PredictionsFile written(scores);
    for (const PredictionEntry& entry : written.header().graphs)
      EXPECT_EQ(entry.fold, fold_of.at(std::string(split) + " " + entry.name));
    EXPECT_EQ(result.graphs.size(), split == std::string("valid") ? 3u : 11u);
  }
}

// A validation graph of default is a test graph of random here, which is a leak only where members
// train on the validation split.
TEST_F(MergedCollections, NoValidationGraphThatIsTrainedOnIsATestGraphOfAnother) {
  const std::string graph = move_graph("random", "valid", "test"), shards = moved_shards();
  EXPECT_EQ(mistake_of_training({shards}), "");
  EXPECT_THAT(mistake_of_training({shards, kBothSplits}),
              HasSubstr("layout:xla:default:" + graph + " of the split valid is trained on, but " +
                        "layout:xla:random:" + graph + " of the split test is the same graph: " +
                        "leave it out by data.exclude.valid"));
  EXPECT_EQ(mistake_of_training({shards, kBothSplits, "data.exclude.valid=['" + graph + "']"}), "");
}

TEST_F(MergedCollections, AreTrainedScoredAndRankedTogether) {
  const std::uint64_t hash = run(merged(), folder_ / "run", 2).parameter_hash;
  run(merged(), folder_ / "stopped", 1, false, stop_after(2));
  EXPECT_EQ(run(merged(), folder_ / "stopped", 1, true).parameter_hash, hash);
  EXPECT_NE(run(tiny_experiment({"train.steps=4"}), folder_ / "alone").parameter_hash, hash);

  const RunRecord record = read_run_folder(folder_ / "run");
  EXPECT_EQ(record.collection, "layout:xla:default+layout:xla:random");
  const CollectionResult valid = score(folder_ / "run");
  EXPECT_EQ(valid.collection, record.collection);
  EXPECT_EQ(valid.graphs.size(), 4u);
  const std::string table = evaluation_table(*valid.evaluation);
  for (const std::string& graph : valid.graphs) EXPECT_THAT(table, HasSubstr("\n" + graph + " "));
  for (const char* mean :
       {"\nlayout:xla:default  ", "\nlayout:xla:random  ", "\nmean of collections  ", "\nmean  "})
    EXPECT_THAT(table, HasSubstr(mean));
  EXPECT_THAT(
      final_score_text(std::vector{valid}),
      AllOf(HasSubstr("final score "), HasSubstr("mean of 2 collections, layout:xla:default"),
            HasSubstr("this model only"), HasSubstr("(without tile:xla, layout:nlp:default")));

  const CollectionResult tests = score(folder_ / "run", {.split = "test", .means = true});
  const Submission submission = make_submission({tests});
  EXPECT_EQ(tests.graphs.size(), 4u);
  for (std::size_t g = 0; g < tests.graphs.size(); ++g)
    EXPECT_EQ(submission.rows().at(g).id, tests.graphs[g]);
}

TEST_F(MergedCollections, AreNotScoredBesideSomeOfThem) {
  run(merged(), folder_ / "both");
  run(tiny_experiment({"train.steps=4"}), folder_ / "one");
  run(tiny_experiment(
          {"data.collection=[layout:xla:default, layout:nlp:default]", "train.steps=4"}),
      folder_ / "other");
  const TrainedRun both = open_run(folder_ / "both"), one = open_run(folder_ / "one"),
                   other = open_run(folder_ / "other");
  EXPECT_EQ(score({one, other}).size(), 2u);
  for (const TrainedRun& beside : {one, other}) {
    EXPECT_THAT(test::message_of<ConfigError>([&] {
                  score({beside, both});
                }),
                AllOf(HasSubstr("both is of layout:xla:default+layout:xla:random, and "),
                      HasSubstr(beside.path.string() + " of " +
                                beside.experiment.data.collection.name + ": ")));
  }
}

}  // namespace
}  // namespace tpudist::test
