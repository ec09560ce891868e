// The folds of a run: what its folder says of them, and what resuming it with other folds meets.

#include "tests/support/thrown.hpp"
#include "train/loop/run_checkpoints.hpp"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "data/loading/fold_table.hpp"
#include "models/network/network.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

FoldTable folds_of(const Experiment& experiment) {
  return training_folds(experiment.ensemble, experiment.data.training());
}

// A run that was stopped after two steps.
TrainOutcome start(const Experiment& experiment, const fs::path& folder) {
  return run(experiment, folder, 1, false, stop_after(2));
}

// A fold file that gives the first graph of the tiny experiment another fold than it has.
fs::path other_folds(const fs::path& folder) {
  FoldTable table = folds_of(tiny_experiment());
  table.graphs.front().fold = 1 - table.graphs.front().fold;
  write_file_atomically(folder / "other.yaml", fold_file_text(table));
  return folder / "other.yaml";
}

std::string message_of_resuming(const Experiment& experiment, const fs::path& folder) {
  return test::message_of<ConfigError>([&] { resume(experiment, folder); });
}

using RecordedFolds = TrainTest;

TEST_F(RecordedFolds, LieInTheRunFolderAsAFoldFile) {
  const TrainOutcome first = run(tiny_experiment(), folder / "run");
  const FoldTable table = folds_of(tiny_experiment());
  std::vector<int> folds;
  for (const FoldedGraph& graph : table.graphs) folds.push_back(graph.fold);
  EXPECT_EQ(FoldFile::read(folder / "run/folds.yaml").folds_of(table.graphs, 2), folds);

  // With the file in place of the rule a run has the same bits.
  const Experiment by_file =
      tiny_experiment({"ensemble.fold_file=" + (folder / "run/folds.yaml").string()});
  EXPECT_EQ(run(by_file, folder / "again").parameter_hash, first.parameter_hash);
}

TEST_F(RecordedFolds, AreNotThereWithoutFolds) {
  run(tiny_experiment({"ensemble.folds=none", "ensemble.vary=[init]"}), folder / "run");
  EXPECT_FALSE(fs::exists(folder / "run/folds.yaml"));
}

TEST_F(RecordedFolds, DoNotDependOnTheSeedOfTheOrder) {
  const FoldTable one = folds_of(tiny_experiment()),
                  two = folds_of(tiny_experiment({"seed.order=9"}));
  ASSERT_EQ(one.graphs.size(), two.graphs.size());
  for (std::size_t g = 0; g < one.graphs.size(); ++g)
    EXPECT_EQ(one.graphs[g].fold, two.graphs[g].fold);
}

TEST_F(RecordedFolds, OtherOnesAreRefusedAndNamed) {
  start(tiny_experiment(), folder / "run");
  const fs::path other = other_folds(folder.path());
  const FoldedGraph graph = folds_of(tiny_experiment()).graphs.front();
  EXPECT_THAT(
      message_of_resuming(tiny_experiment({"ensemble.fold_file=" + other.string()}),
                          folder / "run"),
      AllOf(HasSubstr(fmt::format("folds.yaml: the run has other folds: {} in fold {} then, in {} "
                                  "now; give ensemble.fold_file=",
                                  graph.name, graph.fold, 1 - graph.fold)),
            HasSubstr("--run-dir")));

  // Without folds.yaml the checkpoint still tells that they differ.
  fs::remove(folder / "run/folds.yaml");
  EXPECT_THAT(message_of_resuming(tiny_experiment({"ensemble.fold_file=" + other.string()}),
                                  folder / "run"),
              HasSubstr("was trained with other folds"));
}

TEST_F(RecordedFolds, AreComparedWhereThereIsNoCheckpointYet) {
  start(tiny_experiment(), folder / "run");
  for (const fs::path& path : list_checkpoints(folder / "run/checkpoints")) fs::remove(path);
  const fs::path other = other_folds(folder.path());
  EXPECT_THAT(message_of_resuming(tiny_experiment({"ensemble.fold_file=" + other.string()}),
                                  folder / "run"),
              HasSubstr("folds.yaml: the run has other folds"));
}

TEST_F(RecordedFolds, AreWrittenAgainWhereTheyAreDamaged) {
  start(tiny_experiment(), folder / "run");
  const std::string before = read_text_file(folder / "run/folds.yaml");
  write_file_atomically(folder / "run/folds.yaml", "graphs: {");
  resume(tiny_experiment(), folder / "run");
  EXPECT_EQ(read_text_file(folder / "run/folds.yaml"), before);
}

TEST_F(RecordedFolds, ACheckpointThatDoesNotKnowItsFoldsIsRefused) {
  const Experiment experiment = tiny_experiment();
  start(experiment, folder / "run");
  test::change_checkpoint(list_checkpoints(folder / "run/checkpoints").front(), experiment,
                          [](Checkpoint& checkpoint, const auto&) {
                            ASSERT_TRUE(checkpoint.fold_hash);
                            checkpoint.fold_hash.reset();
                          });
  EXPECT_THAT(message_of_resuming(experiment, folder / "run"),
              HasSubstr("was trained with other folds"));
}

}  // namespace
}  // namespace tpudist::test
