#include "results/scores/result_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/folder_lock.hpp"
#include "results/records/sweep_files.hpp"
#include "tests/results/scores/run_case.hpp"

namespace tpudist {
namespace {

using test::PredictionsCase;
using test::TempDir;
using test::write_run;
using test::write_text;
using ::testing::ElementsAre;

std::vector<std::string> labels_of(const ResultSet& results) {
  std::vector<std::string> labels;
  for (const RunRecord& run : results.runs) labels.push_back(run.label);
  return labels;
}

SweepRun sweep_run(int index, std::uint64_t seed, int member) {
  return {.index = index,
          .id = "000000000000000" + std::to_string(index),
          .variant = 0,
          .experiment = 0,
          .collection = "layout:xla:random",
          .seed = seed,
          .first_member = member,
          .members = 1,
          .folds = 2,
          .config = ""};
}

// Two seeds and two folds.
SweepFiles write_sweep(const std::filesystem::path& folder) {
  SweepRecord record;
  record.name = "folds";
  record.experiments = {"xla"};
  record.variant_experiment = record.variant_group = {0};
  record.labels = {"base"};
  record.runs = {sweep_run(0, 1, 0), sweep_run(1, 1, 1), sweep_run(2, 2, 0), sweep_run(3, 2, 1)};
  record.stages = {{"search", 0, 4, 1, false}};
  std::filesystem::create_directories(folder / "results");
  std::filesystem::create_directories(folder / "claims");
  const SweepFiles files(folder);
  write_record(files.record_file(), record);
  return files;
}

class ResultSetTest : public ::testing::Test {
 protected:
  const TempDir folder_;
};

TEST_F(ResultSetTest, ReadsASweepWhoseRunsAreInAllConditions) {
  const SweepFiles files = write_sweep(folder_ / "sweep");
  const std::vector<SweepRun> runs = files.record().runs;
  write_text(files.run_folder(runs[0]) / "config.yaml", test::config_text(1, 0, 1));
  write_result(files.result_file(runs[0]), {.id = runs[0].id, .finished = true});
  write_result(files.result_file(runs[1]),
               {.id = runs[1].id, .finished = false, .error = "no <memory>"});
  const FolderLock claim(files.claims(), "tpudist sweep run", runs[2].id);
  const ResultSet results = read_results({folder_ / "sweep" / ""});
  EXPECT_EQ(results.title, "folds");
  EXPECT_EQ(results.stage, "search");
  ASSERT_EQ(results.runs.size(), 4u);
  EXPECT_EQ(results.runs[0].state, RunState::finished);
  EXPECT_EQ(results.runs[1].state, RunState::failed);
  EXPECT_EQ(results.runs[1].error, "no <memory>");
  EXPECT_EQ(results.runs[2].state, RunState::running);
  EXPECT_EQ(results.runs[3].state, RunState::waiting);
  EXPECT_EQ(results.runs[3].variant, "base");
  EXPECT_THAT(labels_of(results), ElementsAre("seed 1 member 0", "seed 1 member 1",
                                              "seed 2 member 0", "seed 2 member 1"));
}

TEST_F(ResultSetTest, LabelsTellRunsApart) {
  write_run(folder_ / "a", PredictionsCase(), 1);
  write_run(folder_ / "b", PredictionsCase(), 2);
  write_run(folder_ / "c", PredictionsCase(), 1);
  EXPECT_THAT(labels_of(read_results({folder_ / "a"})), ElementsAre("xla"));
  EXPECT_THAT(labels_of(read_results({folder_ / "a", folder_ / "b"})),
              ElementsAre("seed 1", "seed 2"));
  EXPECT_THAT(labels_of(read_results({folder_ / "a", folder_ / "c"})), ElementsAre("a", "c"));
  EXPECT_EQ(read_results({folder_ / "a", folder_ / "b"}).title, "2 runs");
}

TEST_F(ResultSetTest, AFolderOfRunsStandsForThem) {
  write_run(folder_ / "runs/b", PredictionsCase(), 2);
  write_run(folder_ / "runs/all/a", PredictionsCase(), 1);
  write_text(folder_ / "runs/notes/readme.txt", "no run");
  write_text(folder_ / "runs/file", "no run");
  EXPECT_THAT(labels_of(read_results({folder_ / "runs"})), ElementsAre("seed 1", "seed 2"));
}

TEST_F(ResultSetTest, RunsOfOneNameWithOtherSettingsAreVariants) {
  for (const std::string lr : {"0.001", "0.002"}) {
    for (int seed = 1; seed <= 2; ++seed) {
      write_text(folder_ / ("runs/" + lr + std::to_string(seed)) / "config.yaml",
                 test::config_text(seed, 0, 3) + "optimizer:\n  lr: " + lr + "\n");
    }
  }
  const ResultSet results = read_results({folder_ / "runs"});
  std::vector<std::string> variants;
  for (const RunRecord& run : results.runs) variants.push_back(run.variant);
  EXPECT_THAT(variants, ElementsAre("xla optimizer.lr=0.001", "xla optimizer.lr=0.001",
                                    "xla optimizer.lr=0.002", "xla optimizer.lr=0.002"));
  EXPECT_EQ(results.runs[3].label, "xla optimizer.lr=0.002 seed 2");
}

TEST_F(ResultSetTest, RefusesWhatIsNeitherRunNorSweep) {
  EXPECT_THROW(read_results({folder_ / "none"}), ConfigError);
  EXPECT_THROW(read_results({folder_.path()}), ConfigError);
  EXPECT_THROW(read_results({}), ConfigError);
  write_text(folder_ / "sweep.json", "{}");
  EXPECT_THROW(read_results({folder_.path()}), DataError);
}

}  // namespace
}  // namespace tpudist
