// data.collection as a list: collections that are trained and scored on together.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/error.hpp"
#include "inference/collection_scores.hpp"
#include "schema/merged_collection.hpp"
#include "scores/run_record.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/units/folds.hpp"

namespace tpudist {
namespace {

using test::run;
using test::TempDir;
using test::tiny_experiment;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

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

  ThreadPool pool_{1};
  TempDir folder_;
};

TEST_F(MergedCollections, HoldTheGraphsOfEachUnderTheirIds) {
  const Experiment experiment = merged();
  EXPECT_EQ(experiment.data.collection.name, "layout:xla:random+layout:xla:default");
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

TEST_F(MergedCollections, AGraphHasOneFoldInAllOfThem) {
  const Experiment experiment = merged();
  const Dataset both = open(experiment);
  const FoldTable table = training_folds(experiment.ensemble, both.options()),
                  alone = training_folds(experiment.ensemble, tiny_experiment().data.training());
  std::map<std::string, std::set<int>> folds_of;
  const std::vector<int> folds = graph_folds(table, both);
  for (int g = 0; g < both.size(); ++g)
    folds_of[std::string(graph_of_id(both.graph(g).name))].insert(
        folds[static_cast<std::size_t>(g)]);
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

// A validation graph of random, which here is a training graph of default.
TEST_F(MergedCollections, NoTrainingGraphOfOneIsScoredInAnother) {
  const fs::path npz = folder_ / "npz", default_folder = npz / "layout/xla/default";
  fs::create_directories(npz);
  fs::copy(test::tiny_shards().parent_path() / "npz/layout", npz / "layout",
           fs::copy_options::recursive);
  const fs::path file = fs::directory_iterator(default_folder / "valid")->path().filename();
  const std::string graph = file.stem().string();
  fs::rename(default_folder / "valid" / file, default_folder / "train" / file);
  ConvertOptions options;
  options.npz_root = npz;
  options.shard_root = folder_ / "shards";
  options.jobs = 1;
  NoProgress progress;
  convert(options, progress);
  const std::string shards = "data.shards=" + options.shard_root.string();
  EXPECT_THAT(test::message_of<ConfigError>([&] { open(merged({shards})); }),
              HasSubstr("layout:xla:default:" + graph + " is a training graph, but " +
                        "layout:xla:random:" + graph + " of the split valid is the same"));
  EXPECT_EQ(open(merged({shards, "data.exclude.train=['" + graph + "']"})).size(), 10);
}

TEST_F(MergedCollections, AreTrainedScoredAndRankedTogether) {
  const std::uint64_t hash = run(merged(), folder_ / "run", 2).parameter_hash;
  int steps = 0;
  run(merged(), folder_ / "stopped", 1, false, [&] { return ++steps > 2; });
  EXPECT_EQ(run(merged(), folder_ / "stopped", 1, true).parameter_hash, hash);
  EXPECT_NE(run(tiny_experiment({"train.steps=4"}), folder_ / "alone").parameter_hash, hash);

  const RunRecord record = read_run_folder(folder_ / "run");
  EXPECT_EQ(record.collection, "layout:xla:random+layout:xla:default");
  const auto world = make_self_communicator();
  NoProgress progress;
  JobContext context{*world, pool_, NodeTopology{}, progress};
  const std::vector<TrainedRun> runs{open_run(folder_ / "run")};
  const CollectionResult valid = score_runs(runs, {}, context).front();
  EXPECT_EQ(valid.collection, record.collection);
  EXPECT_EQ(valid.graphs.size(), 4u);
  const std::string table = evaluation_table(*valid.evaluation);
  for (const std::string& graph : valid.graphs) EXPECT_THAT(table, HasSubstr("\n" + graph + " "));
  for (const char* mean : {"\nlayout:xla:default  ", "\nlayout:xla:random  ", "\nmean  "})
    EXPECT_THAT(table, HasSubstr(mean));

  const auto tests = score_runs(runs, {.split = "test", .means = true}, context);
  const Submission submission = make_submission(tests);
  EXPECT_EQ(tests.front().graphs.size(), 4u);
  for (const std::string& id : tests.front().graphs) EXPECT_NE(submission.find(id), nullptr) << id;
}

}  // namespace
}  // namespace tpudist
