#include "results/scores/result_set.hpp"

#include "core/error.hpp"
#include "core/folder_lock.hpp"
#include "results/records/sweep_files.hpp"
#include "results/scores/run_record.hpp"
#include "results/scores/same_training.hpp"
#include "tests/results/scores/run_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

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

using ResultSetTest = FolderTest;

TEST_F(ResultSetTest, ReadsASweepWhoseRunsAreInAllConditions) {
  const SweepFiles files = write_sweep(folder_ / "sweep");
  const std::vector<SweepRun> runs = files.record().runs;
  write_text(files.run_folder(runs[0]) / "config.yaml", config_text(1, 0, 1));
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
                 config_text(seed, 0, 3) + "optimizer:\n  lr: " + lr + "\n");
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

using RunRecordTest = FolderTest;

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
  write_text(folder_ / "run" / "config.yaml", config_text(1, 0, 1));
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
  EXPECT_THAT(read_run_folder(folder_ / "run").faults, Contains(HasSubstr("config.yaml")));
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

constexpr const char* kScoresFile =
    R"({"split": "valid", "most_rows": 0, "held_out_only": false, PARAMETERS
    "ensemble": {"graphs": [{"name": "resnet50", "configs": 8, "kendall_tau": 0.75}]},
    "members": [{"number": 0, "used": true,
                 "graphs": [{"name": "resnet50", "configs": 8, "kendall_tau": 0.5}]}]})";

// A run without predictions, with a loss and, where it is given, the hash of its parameters.
fs::path write_scored(const fs::path& folder, double loss, const std::string& parameters = "",
                      const std::string& lr = "0.001", int steps = 100) {
  write_text(folder / "config.yaml", config_text(1, 0, 1) + "optimizer:\n  lr: " + lr + "\n");
  std::string lines;
  for (int step = 50; step <= steps; step += 50) {
    lines +=
        R"({"kind":"step","step":)" + std::to_string(step) + R"(,"loss":[)" + std::to_string(loss) +
        R"(],"norm":[1.0],"rate":0.01,"step_seconds":0.5,"wait_seconds":0,"train_seconds":1})" +
        "\n";
  }
  write_text(folder / "metrics.jsonl", lines);
  std::string scores = kScoresFile;
  const std::string hash = parameters.empty() ? "" : R"("parameters": ")" + parameters + "\",";
  scores.replace(scores.find("PARAMETERS"), 10, hash);
  write_text(folder / "scores.json", scores);
  return folder;
}

std::vector<SameTraining> pairs_of(const std::vector<fs::path>& folders) {
  std::vector<RunRecord> runs;
  for (const fs::path& folder : folders) runs.push_back(read_run_folder(folder));
  return same_trainings(runs);
}

using SameTrainings = FolderTest;

TEST_F(SameTrainings, AreAFolderALinkToItAndACopy) {
  const fs::path run = write_run(folder_ / "run", PredictionsCase());
  fs::create_directory_symlink(run, folder_ / "link");
  fs::copy(run, folder_ / "copy", fs::copy_options::recursive);
  const auto pairs = pairs_of({run, run, folder_ / "link", folder_ / "copy"});
  ASSERT_EQ(pairs.size(), 3u);
  for (const SameTraining& pair : pairs) EXPECT_EQ(pair.first, 0u);
  EXPECT_EQ(pairs[0].why, "the same folder");
  EXPECT_EQ(pairs[1].why, "the same folder");
  EXPECT_EQ(pairs[2].why, "equal parameters");
  EXPECT_EQ(pairs[2].second, 3u);
}

TEST_F(SameTrainings, AreToldWithoutPredictions) {
  const fs::path a = write_scored(folder_ / "a", 0.5, "00000000000000aa"),
                 b = write_scored(folder_ / "b", 0.6, "00000000000000aa"),
                 c = write_scored(folder_ / "c", 0.5, "00000000000000bb"),
                 d = write_scored(folder_ / "d", 0.5), e = write_scored(folder_ / "e", 0.6);
  EXPECT_EQ(pairs_of({a, b}).at(0).why, "equal parameters");
  EXPECT_THAT(pairs_of({a, c}), IsEmpty());  // imported weights, say
  EXPECT_EQ(pairs_of({a, d}).at(0).why, "equal losses at 2 logged steps");
  EXPECT_THAT(pairs_of({a, e}), IsEmpty());
}

TEST_F(SameTrainings, ALongerTrainingOfOtherSettingsIsAnotherOne) {
  const fs::path a = write_scored(folder_ / "a", 0.5),
                 b = write_scored(folder_ / "b", 0.5, "", "0.001", 150),
                 c = write_scored(folder_ / "c", 0.5, "", "0.002", 150);
  EXPECT_EQ(pairs_of({a, b}).size(), 1u);  // a copy of when it still trained
  EXPECT_THAT(pairs_of({a, c}), IsEmpty());
}

TEST(DifferentSettings, LeaveSeedsAndMembersOut) {
  const TempDir folder;
  const RunRecord a = read_run_folder(write_scored(folder / "a", 0.5)),
                  b = read_run_folder(write_scored(folder / "b", 0.5, "", "2e-3"));
  EXPECT_THAT(different_settings(a, b), ElementsAre(HasSubstr("optimizer.lr: 0.001 -> 2e-3")));
  write_text(folder / "c" / "config.yaml", config_text(7, 2, 5) + "optimizer:\n  lr: 1e-3\n");
  EXPECT_THAT(different_settings(a, read_run_folder(folder / "c")), IsEmpty());
}

}  // namespace
}  // namespace tpudist::test
