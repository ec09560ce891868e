#include "train/weights/imported_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "results/checkpoints/weights_file.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/loop/training_state.hpp"
#include "train/weights/exported_weights.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

ImportedRun import(const Experiment& experiment, const std::vector<std::filesystem::path>& files,
                   const std::filesystem::path& run) {
  OneRank alone;
  return import_run(experiment, files, run, alone.context);
}

std::vector<std::filesystem::path> export_all(const TrainedRun& run,
                                              const std::filesystem::path& file) {
  const auto members = exported_members(run, file, std::nullopt);
  export_weights(run, members);
  std::vector<std::filesystem::path> files;
  for (const ExportedMember& member : members) files.push_back(member.path);
  return files;
}

class ImportedRunTest : public ::testing::Test {
 protected:
  const TempDir folder_;
  const Experiment experiment_ = tiny_experiment({"train.last_evaluation=none"});
};

TEST_F(ImportedRunTest, HasTheBitsThatWereExported) {
  test::run(experiment_, folder_ / "trained");
  const TrainedRun trained = open_run(folder_ / "trained");
  const auto files = export_all(trained, folder_ / "w.safetensors");
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[1], folder_ / "w-member-1.safetensors");
  const ImportedRun imported = import(experiment_, files, folder_ / "imported");
  EXPECT_TRUE(imported.can_resume);
  EXPECT_TRUE(imported.absent_statistics.empty());
  EXPECT_EQ(imported.parameter_hash, trained.parameter_hash);
  const TrainedRun again = open_run(folder_ / "imported");
  EXPECT_EQ(again.step, 0);
  EXPECT_EQ(again.flat, trained.flat);
  EXPECT_EQ(again.fold_hash, trained.fold_hash);
}

TEST_F(ImportedRunTest, HasTheFoldsOfBothSplits) {
  const Experiment both =
      tiny_experiment({"train.last_evaluation=none", "ensemble.fold_over=train+valid"});
  test::run(both, folder_ / "trained");
  const TrainedRun trained = open_run(folder_ / "trained");
  import(both, export_all(trained, folder_ / "w.safetensors"), folder_ / "imported");
  EXPECT_EQ(open_run(folder_ / "imported").fold_hash, trained.fold_hash);
  EXPECT_NO_THROW(resume(both, folder_ / "imported"));
}

TEST_F(ImportedRunTest, OfCutGraphsGoesOnTraining) {
  const Experiment cut = tiny_experiment({"train.last_evaluation=none", "loss={list_mle: {}}",
                                          "data.segments={by: consecutive, nodes: 20}"});
  test::run(cut, folder_ / "trained");
  import(cut, export_all(open_run(folder_ / "trained"), folder_ / "w.safetensors"),
         folder_ / "imported");
  EXPECT_EQ(resume(cut, folder_ / "imported").steps, 6);
}

// Imported initial weights, trained, end as the run that began with them.
TEST_F(ImportedRunTest, GoesOnTraining) {
  ThreadPool pool(1, use_one_thread_per_worker);
  const Network network = make_network(experiment_, -1, pool);
  TrainingState initial(experiment_, network);
  initial.initialise(experiment_, network);
  const auto length = static_cast<std::size_t>(network.parameters().length());
  std::vector<std::filesystem::path> files;
  for (std::size_t m = 0; m < 3; ++m) {
    files.push_back(folder_ / (std::to_string(m) + ".safetensors"));
    write_weights(files.back(), network.parameters(),
                  std::span<const float>(initial.weights().flat).subspan(m * length, length), {});
  }
  import(experiment_, files, folder_ / "imported");
  const TrainOutcome went_on = resume(experiment_, folder_ / "imported");
  const TrainOutcome fresh = test::run(experiment_, folder_ / "fresh");
  EXPECT_EQ(went_on.steps, 6);
  EXPECT_EQ(went_on.parameter_hash, fresh.parameter_hash);
}

TEST_F(ImportedRunTest, CanBeScoredWithoutShards) {
  test::run(experiment_, folder_ / "trained");
  const auto files = export_all(open_run(folder_ / "trained"), folder_ / "w.safetensors");
  const Experiment elsewhere = tiny_experiment({"data.shards=" + (folder_ / "none").string()});
  EXPECT_FALSE(import(elsewhere, files, folder_ / "imported").can_resume);
  EXPECT_EQ(open_run(folder_ / "imported").step, 0);
}

TEST_F(ImportedRunTest, RefusesBeforeItWrites) {
  test::run(experiment_, folder_ / "trained");
  auto files = export_all(open_run(folder_ / "trained"), folder_ / "w.safetensors");
  EXPECT_THROW(import(experiment_, files, folder_ / "trained"), ConfigError);
  files.pop_back();
  try {
    import(experiment_, files, folder_ / "imported");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("ensemble.members is 3, but 2 files are given"));
  }
  std::ofstream(folder_ / "bad.safetensors") << "no weights";
  files.push_back(folder_ / "bad.safetensors");
  EXPECT_THROW(import(experiment_, files, folder_ / "imported"), DataError);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "imported"));
}

TEST_F(ImportedRunTest, ExportsOneMemberIntoTheFileItself) {
  test::run(experiment_, folder_ / "trained");
  TrainedRun run = open_run(folder_ / "trained");
  const auto one = exported_members(run, folder_ / "w.safetensors", 2);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].number, 2);
  EXPECT_EQ(one[0].path, folder_ / "w.safetensors");
  EXPECT_THROW(exported_members(run, folder_ / "w.safetensors", 3), ConfigError);
  run.use[2] = false;
  EXPECT_THROW(exported_members(run, folder_ / "w.safetensors", 2), ConfigError);
  EXPECT_EQ(exported_members(run, folder_ / "w.safetensors", std::nullopt).size(), 2u);
}

}  // namespace
}  // namespace tpudist::test
