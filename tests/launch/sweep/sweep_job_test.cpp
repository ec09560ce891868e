#include "launch/sweep/sweep_job.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/failed_device.hpp"
#include "dist/collectives/communicator.hpp"
#include "launch/sweep/sweep_tables.hpp"
#include "models/kernels/cpu_process.hpp"
#include "results/records/run_folder.hpp"
#include "tests/launch/sweep/sweep_case.hpp"

// The sweep on one rank; several ranks and groups are tried in tests/launch/sweep_ranks_test.
namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

SweepOutcome run(
    const SweepFolder& folder, std::optional<int> index = {},
    const std::function<bool()>& stop = [] { return false; }, bool go_on = false) {
  const auto world = make_self_communicator();
  ThreadPool pool(1, use_one_thread_per_worker);
  NoProgress progress;
  JobContext context{*world, pool, NodeTopology{}, progress};
  return run_sweep(folder, {{}, index, go_on}, context, stop);
}

TEST(SweepJobTest, TrainsEveryRunOnce) {
  const ExpandedSweep sweep("sweep: {seeds: 3}\n");
  SweepOutcome outcome = run(sweep);
  EXPECT_EQ(outcome.finished, 3);
  EXPECT_EQ(outcome.failed, 0);
  const std::string table = collect_table(sweep);
  EXPECT_EQ(run(sweep).finished, 0);
  EXPECT_EQ(collect_table(sweep), table);
  for (const SweepRun& one : sweep.record().runs) {
    EXPECT_EQ(sweep.state(one), RunState::finished);
    EXPECT_EQ(sweep.result(one)->parameters.size(), 16u);
    EXPECT_EQ(sweep.result(one)->inputs, one.inputs);
    EXPECT_EQ(sweep.result(one)->inputs.at("data.valid").size(), 16u);
    EXPECT_TRUE(sweep.result(one)->valid());
    EXPECT_THAT(table, HasSubstr(sweep.result(one)->parameters));
  }
}

// Whoever looks at a thousand runs before each of them reads a million files.
TEST(SweepJobTest, LooksAtTheResultOfAFinishedRunOnce) {
  const ExpandedSweep sweep("sweep: {seeds: 3}\n");
  const fs::path first = sweep.result_file(sweep.record().runs[0]);
  bool seen = false;  // the second run has begun, so that the first result has been looked at
  const SweepOutcome outcome = run(sweep, {}, [&] {
    if (RunFolder::exists(sweep.run_folder(sweep.record().runs[1])) && !seen) {
      seen = true;
      std::ofstream(first) << "no JSON";
    }
    return false;
  });
  EXPECT_TRUE(seen);
  EXPECT_EQ(outcome.finished, 3);
  EXPECT_FALSE(outcome.group_lost);
}

// A run that was stopped goes on, and has the bits of one that never was.
TEST(SweepJobTest, StoppedRunsGoOn) {
  const SweepCase files;
  const auto sweep_file = files.sweep("sweep: {seeds: 2}\n");
  const SweepFolder whole = SweepFolder::expand(sweep_file, {}, files.path("whole"));
  run(whole);
  const SweepFolder broken = SweepFolder::expand(sweep_file, {}, files.path("broken"));
  int asked = 0;
  const SweepOutcome stopped = run(broken, {}, [&] { return ++asked > 3; });
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.finished, 0);
  EXPECT_EQ(broken.state(broken.record().runs[0]), RunState::stopped);
  EXPECT_EQ(broken.state(broken.record().runs[1]), RunState::waiting);
  EXPECT_EQ(run(broken).finished, 2);
  EXPECT_EQ(collect_table(broken), collect_table(whole));
}

TEST(SweepJobTest, AFailedRunIsRecordedAndTheOthersGoOn) {
  const ExpandedSweep sweep(
      "sweep: {over: {data.collection: ['layout:nlp:random', 'layout:xla:random'], "
      "data.include.train: [['no such graph'], []]}}\n");
  SweepOutcome outcome = run(sweep);
  EXPECT_EQ(outcome.finished, 2);
  EXPECT_EQ(outcome.failed, 2);
  const SweepRun& bad = sweep.record().runs[0];
  EXPECT_EQ(sweep.state(bad), RunState::failed);
  EXPECT_THAT(sweep.result(bad)->error, HasSubstr("no such graph"));
  EXPECT_THAT(status_table(sweep), HasSubstr("failed: "));
  EXPECT_THAT(status_table(sweep), Not(ContainsRegex("run +[0-9]+  .*  finished")));
  // Left alone until it is asked for.
  outcome = run(sweep);
  EXPECT_EQ(outcome.finished + outcome.failed, 0);
  EXPECT_EQ(run(sweep, 0).failed, 1);
  sweep.forget_failure(bad);
  EXPECT_EQ(run(sweep).failed, 1);
}

// The shards go while runs train: what is left waits for them.
TEST(SweepJobTest, ARunWithoutItsShardsIsNotMarkedAsFailed) {
  const SweepCase files;
  const auto shards = files.path("shards"), away = files.path("away");
  fs::copy(tiny_shards(), shards, fs::copy_options::recursive);
  const SweepFolder sweep = SweepFolder::expand(
      files.sweep("set: {data.shards: '" + shards.string() + "'}\nsweep: {seeds: 2}\n"), {},
      files.path("sweep"));
  fs::rename(shards, away);
  for (const std::optional<int> index : {std::optional<int>(), std::optional(1)}) {
    const SweepOutcome outcome = run(sweep, index);
    EXPECT_TRUE(outcome.group_lost);
    EXPECT_EQ(outcome.failed, 0);
  }
  for (const SweepRun& one : sweep.record().runs) EXPECT_EQ(sweep.state(one), RunState::waiting);
  fs::rename(away, shards);
  EXPECT_EQ(run(sweep).finished, 2);
}

TEST(SweepJobTest, MembersKeepTheirNumbers) {
  const ExpandedSweep sweep("sweep: {seeds: 1}\n", "ensemble: {members: 2, first_member: 3}\n");
  EXPECT_EQ(run(sweep).finished, 1);
  const RunResult result = sweep.result(sweep.record().runs[0]).value();
  ASSERT_EQ(result.members.size(), 2u);
  EXPECT_EQ(result.members[1].number, 4);
  EXPECT_TRUE(result.members[1].valid);
}

TEST(SweepJobTest, AnIndexTrainsOneRun) {
  const ExpandedSweep sweep(
      "sweep: {over: {optimizer.lr: [1e-3, 1e-2]}}\nchoose: {by: valid, baseline: none}\n");
  EXPECT_EQ(run(sweep, 1).finished, 1);
  EXPECT_EQ(sweep.state(sweep.record().runs[0]), RunState::waiting);
  EXPECT_EQ(sweep.state(sweep.record().runs[1]), RunState::finished);
  EXPECT_EQ(run(sweep, 1).finished, 0);
  // A run of a stage that is not known yet, and one that will never be.
  EXPECT_TRUE(run(sweep, 2).group_lost);
  EXPECT_TRUE(run(sweep, 99).group_lost);
  EXPECT_EQ(run(sweep, 0).finished, 1);
  EXPECT_EQ(run(sweep, 2).finished, 1);
  EXPECT_EQ(run(sweep).finished, 2);
  EXPECT_THAT(collect_table(sweep), HasSubstr(", 3 fresh seeds,"));
}

// Every further run would fail within a second on a GPU that is lost.
TEST(SweepJobTest, AGroupWhoseGpuHasFailedTakesNoOtherRun) {
  const ExpandedSweep sweep("sweep: {seeds: 3}\n");
  device_has_failed = true;
  const SweepOutcome outcome = run(sweep);
  device_has_failed = false;
  EXPECT_EQ(outcome.finished + outcome.failed, 1);
  EXPECT_TRUE(outcome.group_lost);
  EXPECT_EQ(sweep.state(sweep.record().runs[1]), RunState::waiting);
}

// Whose failure a machine may be to blame for is not to decide what goes on.
TEST(SweepJobTest, AStageDoesNotBeginOnFailedRuns) {
  const ExpandedSweep sweep(
      "sweep: {over: {optimizer.lr: [1e-3, 1e-2]}}\nchoose: {by: valid, baseline: none}\n");
  const SweepRun& bad = sweep.record().runs[1];
  std::ofstream(sweep.run_folder(bad)) << "in the way";
  EXPECT_TRUE(run(sweep).group_lost);
  EXPECT_FALSE(sweep.stage_runs(1));
  EXPECT_THAT(collect_table(sweep), HasSubstr("nothing is chosen yet: runs failed"));
  EXPECT_THAT(status_table(sweep), HasSubstr("not begun: `sweep retry`"));
  EXPECT_TRUE(run(sweep, 2).group_lost);  // nor does a task of an array begin it
  EXPECT_EQ(run(
                sweep, {}, [] { return false; }, /*go_on=*/true)
                .finished,
            3);
  EXPECT_EQ(sweep.stale_reason(1), "");
  // Trained again after all, the choice may be another one.
  fs::remove(sweep.run_folder(bad));
  sweep.forget_failure(bad);
  EXPECT_THAT(sweep.stale_reason(1), HasSubstr("made without run 1"));
  EXPECT_EQ(run(sweep).finished, 1);
  RunResult best = sweep.result(bad).value();
  best.members[0].valid = 2;
  write_result(sweep.result_file(bad), best);
  EXPECT_THAT(collect_table(sweep), HasSubstr("the choice for \"confirm\" is stale: by the results "
                                              "as they are now it is optimizer.lr=1e-2\n"));
  EXPECT_EQ(next_command(sweep), "tpudist sweep retry " + sweep.path().string() + " --take-back");
  EXPECT_THAT(sweep.take_back(), ElementsAre("confirm"));
  EXPECT_THAT(sweep.take_back(), IsEmpty());
  EXPECT_EQ(run(sweep).finished, 3);
  EXPECT_EQ(sweep.stage_runs(1)->at(0).variant, 1);
}

// All members in one run, or each in a run of its own: the same members, and the same table.
TEST(SweepJobTest, PlacementChangesNoScore) {
  const SweepCase files("predictions: {rows: all}\n");
  nlohmann::json tables[2];
  const auto scores = [&](const std::string& placement) {
    const SweepFolder sweep = SweepFolder::expand(
        files.sweep("sweep: {seeds: 2, folds: 2}\nplacement: " + placement + "\n",
                    placement + ".yaml"),
        {}, files.path(placement));
    EXPECT_EQ(run(sweep).failed, 0);
    tables[placement == "split"] = collect_json(sweep).at("stages").at(0);
    std::vector<std::pair<std::optional<std::uint64_t>, double>> list;
    for (const SweepRun& one : sweep.record().runs) {
      const RunResult result = sweep.result(one).value();
      for (const RunResult::Member& member : result.members)
        list.emplace_back(one.seed, member.valid.value());
    }
    return list;
  };
  EXPECT_EQ(scores("split"), scores("fused"));
  EXPECT_EQ(tables[0].at("score"), "out of fold");
  const auto &fused = tables[0].at("variants").at(0), &split = tables[1].at("variants").at(0);
  EXPECT_DOUBLE_EQ(fused.at("mean"), split.at("mean"));
  EXPECT_DOUBLE_EQ(fused.at("deviation"), split.at("deviation"));
}

TEST(RankGroups, TheLastSizeIsRepeated) {
  EXPECT_THAT(group_of_ranks({}, 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(group_of_ranks({2}, 5), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(group_of_ranks({2, 1}, 5), ElementsAre(0, 0, 1, 2, 3));
}

TEST(RankGroups, SizesThatNoRankFillsAreRefused) {
  EXPECT_THROW(group_of_ranks({2, 2, 1}, 4), ConfigError);
  EXPECT_THROW(group_of_ranks({4}, 2), ConfigError);
  EXPECT_THROW(group_of_ranks({2, 2}, 3), ConfigError);
  EXPECT_THROW(group_of_ranks({0}, 2), ConfigError);
}

}  // namespace
}  // namespace tpudist::test
