#include "results/scores/run_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/folder_lock.hpp"
#include "tests/results/scores/run_case.hpp"

namespace tpudist {
namespace {

using test::PredictionsCase;
using test::TempDir;
using test::write_run;
using test::write_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunRecordTest : public ::testing::Test {
 protected:
  const TempDir folder_;
};

TEST_F(RunRecordTest, ReadsAFinishedRun) {
  const RunRecord run = read_run_folder(write_run(folder_ / "one", PredictionsCase()));
  EXPECT_EQ(run.name, "xla");
  EXPECT_EQ(run.collection, "layout:xla:random");
  EXPECT_EQ(run.state, RunState::finished);
  EXPECT_EQ(run.members, 3);
  EXPECT_EQ(run.folds, 2);
  EXPECT_EQ(run.steps, 100);
  EXPECT_EQ(run.setting("ensemble.first_member"), "0");
  EXPECT_EQ(run.setting("no.such_key"), "");
  ASSERT_TRUE(run.hashes && run.scores && run.predictions);
  EXPECT_EQ(run.hashes->settings_hash, 2u);
  EXPECT_THAT(run.faults, ElementsAre());
}

TEST_F(RunRecordTest, AListOfCollectionsHasTheNameThatItsTrainingGave) {
  const auto collection_of = [&](const std::string& setting) {
    write_text(folder_ / "run" / "config.yaml", "data:\n  collection: " + setting + "\n");
    return read_run_folder(folder_ / "run").collection;
  };
  const char* both = "layout:xla:default+layout:xla:random";
  EXPECT_EQ(collection_of("[layout:xla:default, layout:xla:random]"), both);
  EXPECT_EQ(collection_of("['layout:xla:random', \"layout:xla:default\"]"), both);
  EXPECT_EQ(collection_of("\n    - layout:xla:random\n    - layout:xla:default"), both);
  EXPECT_EQ(collection_of("[tile:xla]"), "tile:xla");
  EXPECT_EQ(collection_of("\"tile:xla\""), "tile:xla");
}

TEST_F(RunRecordTest, ARunThatSomebodyHoldsIsRunning) {
  write_text(folder_ / "run" / "config.yaml", test::config_text(1, 0, 1));
  EXPECT_EQ(read_run_folder(folder_ / "run").state, RunState::stopped);
  const FolderLock lock(folder_ / "run", "tpudist train");
  const RunRecord run = read_run_folder(folder_ / "run");
  EXPECT_EQ(run.state, RunState::running);
  EXPECT_FALSE(run.scores);
}

TEST_F(RunRecordTest, WhatIsDamagedIsNamedAndTheRestIsRead) {
  write_run(folder_ / "run", PredictionsCase());
  write_text(folder_ / "run" / "predictions.h5", "no HDF5");
  write_text(folder_ / "run" / "scores.json", "{");
  const RunRecord run = read_run_folder(folder_ / "run");
  EXPECT_EQ(run.curves.steps.size(), 2u);
  EXPECT_FALSE(run.scores);
  EXPECT_THAT(run.faults, ElementsAre(HasSubstr("predictions.h5"), HasSubstr("scores.json")));

  write_text(folder_ / "run" / "config.yaml", ": [");
  EXPECT_THAT(read_run_folder(folder_ / "run").faults,
              ::testing::Contains(HasSubstr("config.yaml")));
}

TEST_F(RunRecordTest, AFolderWithoutARunIsRefused) {
  EXPECT_THROW(read_run_folder(folder_.path()), ConfigError);
}

TEST_F(RunRecordTest, ReadsAFileOfPredictionsByItself) {
  PredictionsCase().write(folder_ / "some.h5");
  const RunRecord run = read_predictions_record(folder_ / "some.h5");
  EXPECT_EQ(run.name, "xla");
  EXPECT_EQ(run.members, 3);
  EXPECT_EQ(run.init_seed, 5);
  EXPECT_TRUE(run.config.empty());
}

}  // namespace
}  // namespace tpudist
