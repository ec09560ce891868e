#include "sweep/sweep_folder.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"
#include "tests/sweep/sweep_case.hpp"

namespace tpudist::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

RunResult finished(const SweepRun& run, double score) {
  RunResult result;
  result.id = run.id;
  result.finished = true;
  result.parameters = "0123456789abcdef";
  result.members = {{0, false, score, std::nullopt}};
  return result;
}

const std::string kTwoRates = "sweep: {over: {optimizer.lr: [1e-3, 1e-2]}}\n";

TEST(SweepFolderTest, ExpandingTwiceGivesTheSameList) {
  const SweepCase files;
  const auto sweep = files.sweep(kTwoRates);
  const auto folder = files.path("sweep");
  const SweepFolder first = SweepFolder::expand(sweep, {}, folder);
  const SweepFolder again = SweepFolder::expand(sweep, {}, folder);
  const SweepFolder opened = SweepFolder::open(folder);
  ASSERT_EQ(first.record().runs.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again.record().runs[i].id, first.record().runs[i].id);
    EXPECT_EQ(opened.record().runs[i].id, first.record().runs[i].id);
    EXPECT_EQ(opened.record().runs[i].config, first.record().runs[i].config);
  }
  EXPECT_EQ(opened.record().labels, first.record().labels);
}

TEST(SweepFolderTest, AFolderHoldsOneSweepAndNothingElse) {
  const SweepCase files;
  const auto folder = files.path("sweep");
  SweepFolder::expand(files.sweep(kTwoRates), {}, folder);
  const auto other = files.sweep("sweep: {over: {optimizer.lr: [1e-3, 2e-2]}}\n", "other.yaml");
  EXPECT_THAT(testing::message_of<ConfigError>([&] { SweepFolder::expand(other, {}, folder); }),
              HasSubstr("holds another sweep (\"case\", 2 runs, the first that differs is run 1)"));
  EXPECT_THAT(
      testing::message_of<ConfigError>([&] { SweepFolder::expand(other, {}, tiny_shards()); }),
      HasSubstr("holds other files and no sweep"));
  EXPECT_THAT(testing::message_of<ConfigError>([&] { SweepFolder::open(files.path("none")); }),
              HasSubstr("holds no sweep"));
}

// The list is frozen: what happens to the files it came from does not reach it.
TEST(SweepFolderTest, LaterStagesDoNotReadTheOriginalFiles) {
  const SweepCase files;
  const auto folder = files.path("sweep");
  SweepFolder::expand(files.sweep(kTwoRates + "choose: {by: valid}\n"), {}, folder);
  fs::remove(files.path("sweep.yaml"));
  files.write("tiny.yaml", "name: changed\n");
  const SweepFolder sweep = SweepFolder::open(folder);
  const auto& runs = sweep.record().runs;
  write_result(sweep.result_file(runs[0]), finished(runs[0], 0.1));
  write_result(sweep.result_file(runs[1]), finished(runs[1], 0.4));
  EXPECT_FALSE(sweep.stage_runs(1));
  sweep.freeze_stage(1);
  const auto confirming = sweep.stage_runs(1);
  ASSERT_TRUE(confirming);
  ASSERT_EQ(confirming->size(), 3u);
  EXPECT_EQ((*confirming)[0].variant, 1);
  EXPECT_EQ((*confirming)[0].index, 2);
  EXPECT_THAT((*confirming)[0].config, HasSubstr("lr: 0.01"));
  EXPECT_EQ(sweep.known_runs().size(), 5u);
  sweep.freeze_stage(1);  // whoever comes second finds it
}

TEST(SweepFolderTest, StatesFollowClaimsAndResults) {
  const SweepCase files;
  const SweepFolder sweep = SweepFolder::expand(files.sweep(kTwoRates), {}, files.path("sweep"));
  const SweepRun& run = sweep.record().runs[0];
  EXPECT_EQ(sweep.state(run), RunState::waiting);
  {
    const RunClaimFile claim = sweep.claim(run);
    ASSERT_TRUE(claim);
    EXPECT_EQ(sweep.state(run), RunState::running);
    EXPECT_FALSE(sweep.claim(run));
    EXPECT_TRUE(sweep.claim(sweep.record().runs[1]));
  }
  EXPECT_EQ(sweep.state(run), RunState::waiting);
  // The file that a dead process leaves behind holds nothing.
  std::ofstream(sweep.path() / "claims" / run.id) << "tpudist sweep run, process 1\n";
  EXPECT_EQ(sweep.state(run), RunState::waiting);
  EXPECT_TRUE(sweep.claim(run));

  fs::create_directories(sweep.run_folder(run) / "checkpoints");
  std::ofstream(sweep.run_folder(run) / "config.yaml") << "name: x\n";
  EXPECT_EQ(sweep.state(run), RunState::stopped);
  RunResult result = finished(run, 0.5);
  result.finished = false;
  result.error = "no memory";
  write_result(sweep.result_file(run), result);
  EXPECT_EQ(sweep.state(run), RunState::failed);
  sweep.forget_failure(run);
  EXPECT_EQ(sweep.state(run), RunState::stopped);
  write_result(sweep.result_file(run), finished(run, 0.5));
  EXPECT_EQ(sweep.state(run), RunState::finished);
  sweep.forget_failure(run);  // only of failed runs
  EXPECT_EQ(sweep.state(run), RunState::finished);
  EXPECT_EQ(sweep.result(run)->valid(), 0.5);
}

TEST(SweepFolderTest, DamagedFilesAreNamed) {
  const SweepCase files;
  const SweepFolder sweep = SweepFolder::expand(files.sweep(kTwoRates), {}, files.path("sweep"));
  const SweepRun& run = sweep.record().runs[0];
  std::ofstream(sweep.result_file(run)) << "{\"format\": \"tpudist sweep re";
  EXPECT_THAT(testing::message_of<DataError>([&] { sweep.result(run); }),
              HasSubstr(sweep.result_file(run).string() + ": damaged"));
  std::ofstream(sweep.path() / "sweep.json") << "{}";
  EXPECT_THAT(testing::message_of<DataError>([&] { SweepFolder::open(sweep.path()); }),
              HasSubstr("sweep.json: damaged"));
}

}  // namespace
}  // namespace tpudist::testing
