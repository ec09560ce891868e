#include "launch/sweep/sweep_folder.hpp"

#include <fmt/format.h>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "data/shards/shard_reader.hpp"
#include "launch/sweep/sweep_tables.hpp"
#include "tests/launch/sweep/sweep_case.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

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
  EXPECT_THAT(message_of<ConfigError>([&] { SweepFolder::expand(other, {}, folder); }),
              HasSubstr("holds another sweep (\"case\", 2 runs, the first that differs is run 1)"));
  EXPECT_THAT(message_of<ConfigError>([&] { SweepFolder::expand(other, {}, tiny_shards()); }),
              HasSubstr("holds other files and no sweep"));
  EXPECT_THAT(message_of<ConfigError>([&] { SweepFolder::open(files.path("none")); }),
              HasSubstr("holds no sweep"));
}

// The list is frozen: what happens to the files it came from does not reach it.
TEST(SweepFolderTest, LaterStagesDoNotReadTheOriginalFiles) {
  const SweepCase files;
  const auto folder = files.path("sweep");
  SweepFolder::expand(files.sweep(kTwoRates + "choose: {by: valid, baseline: none}\n"), {}, folder);
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
  const ExpandedSweep sweep(kTwoRates);
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
  // The file that a dead process leaves behind holds nothing. Who looks changes nothing: they may
  // be of another user.
  const fs::path left = sweep.path() / "claims" / run.id;
  std::ofstream(left) << "tpudist sweep run, process 1\n";
  EXPECT_EQ(sweep.state(run), RunState::waiting);
  EXPECT_TRUE(fs::exists(left));
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
  EXPECT_EQ(sweep.state(run), RunState::waiting);
  EXPECT_TRUE(sweep.claim(run));
  EXPECT_EQ(sweep.state(run), RunState::stopped);
  write_result(sweep.result_file(run), finished(run, 0.5));
  EXPECT_EQ(sweep.state(run), RunState::finished);
  sweep.forget_failure(run);  // only of failed runs
  EXPECT_EQ(sweep.state(run), RunState::finished);
  EXPECT_EQ(sweep.result(run)->valid(), 0.5);
}

// A sweep on shards of its own, which can be taken away.
struct OwnShards {
  OwnShards() {
    fs::copy(tiny_shards(), shards, fs::copy_options::recursive);
    sweep_file = files.sweep("set: {data: {shards: '" + shards.string() + "'}}\n" + kTwoRates);
    choosing_file = files.write("choose.yaml", "include: sweep.yaml\nchoose: {by: valid}\n");
  }
  SweepCase files;
  fs::path shards = files.path("shards"), sweep_file, choosing_file;
};

TEST(SweepFolderTest, HalvesOfTheValidationFamiliesAreFrozen) {
  const OwnShards own;
  const SweepFolder sweep = SweepFolder::expand(own.choosing_file, {}, own.files.path("sweep"));
  ASSERT_EQ(sweep.record().halves.size(), 1u);
  const SweepRecord::Halves& halves = sweep.record().halves[0];
  EXPECT_FALSE(halves.choosing.empty());
  for (const SweepRun& run : sweep.record().runs)
    write_result(sweep.result_file(run), finished(run, 0.1));
  sweep.freeze_stage(1);
  EXPECT_THAT(collect_table(sweep),
              AllOf(HasSubstr("search: valid (choosing half) score."),
                    HasSubstr("members  valid (choosing half)  out of fold"),
                    HasSubstr("confirm: valid (confirming half) score."),
                    HasSubstr("members  valid (confirming half)  out of fold")));
  const SweepRun run = sweep.stage_runs(1)->at(0);
  for (const std::string& name : halves.choosing) EXPECT_THAT(run.config, HasSubstr(name));
  EXPECT_NE(run.inputs.at("data.valid"), sweep.record().runs[0].inputs.at("data.valid"));
  EXPECT_EQ(run.inputs.at("data.train"), sweep.record().runs[0].inputs.at("data.train"));
}

TEST(SweepFolderTest, OtherGraphsAreRefusedAndNamed) {
  const OwnShards own;
  const SweepFolder sweep = SweepFolder::expand(own.sweep_file, {}, own.files.path("sweep"));
  EXPECT_NO_THROW(sweep.checked(sweep.record().runs[0]));
  // As if the sweep had been expanded for a graph less, and another content of the first one.
  SweepRecord record = sweep.record();
  std::vector<FrozenData::Graph>& graphs = record.data.at(0).graphs;
  const std::string lost = graphs.back().name, changed = graphs.front().name;
  ASSERT_EQ(graphs.back().split, "valid");
  ASSERT_EQ(graphs.front().split, "train");
  graphs.pop_back();
  ++graphs.front().source_hash;
  for (SweepRun& run : record.runs) run.inputs["data.valid"] = std::string(16, '0');
  write_record(sweep.path() / "sweep.json", record);
  const SweepFolder other = SweepFolder::open(sweep.path());
  EXPECT_THAT(message_of<DataError>([&] { other.checked(other.record().runs[0]); }),
              AllOf(HasSubstr("train: 1 changed (" + changed + ")"),
                    HasSubstr("valid: 1 added (" + lost + ")")));
  // A result of other data does not count either.
  RunResult result = finished(record.runs[0], 0.5);
  result.inputs["data.valid"] = std::string(16, '1');
  write_result(other.result_file(record.runs[0]), result);
  EXPECT_THAT(message_of<DataError>([&] { other.result(record.runs[0]); }),
              HasSubstr("was trained on other data"));
}

TEST(SweepFolderTest, DataThatWereNotThereAreFrozenByTheFirstRun) {
  const OwnShards own;
  fs::rename(own.shards, own.files.path("away"));
  const auto folder = own.files.path("sweep");
  SweepFolder sweep = SweepFolder::expand(own.sweep_file, {}, folder);
  EXPECT_TRUE(sweep.record().runs[0].inputs.empty());
  sweep.freeze_data();
  EXPECT_TRUE(sweep.record().runs[0].inputs.empty());
  EXPECT_THAT(sweep.data_fault(),
              AllOf(HasSubstr(own.shards.string() + ": there is no such folder of shards"),
                    HasSubstr("`tpudist convert NPZ " + own.shards.string() + "` makes them")));
  fs::rename(own.files.path("away"), own.shards);
  EXPECT_EQ(sweep.data_fault(), "");
  sweep.freeze_data();
  EXPECT_EQ(sweep.record().runs[0].inputs.at("data.train").size(), 16u);
  EXPECT_EQ(SweepFolder::open(folder).record().data.size(), 1u);
}

TEST(SweepFolderTest, OtherShardsAreTakenUntilARunHasBegun) {
  const OwnShards own;
  const auto folder = own.files.path("sweep");
  const std::string other = own.files.path("other").string();
  const std::vector<std::string> moved{"set.data.shards=" + other};
  SweepFolder::expand(own.sweep_file, moved, folder);  // there are none
  const SweepFolder sweep = SweepFolder::expand(own.sweep_file, {}, folder);
  EXPECT_EQ(sweep.data_fault(), "");
  EXPECT_EQ(sweep.record().data.size(), 1u);
  EXPECT_THAT(SweepFolder::open(folder).record().runs[1].config, HasSubstr(own.shards.string()));
  EXPECT_THAT(read_text_file(folder / "sweep.yaml"), HasSubstr(own.shards.string()));
  const SweepRun& run = sweep.record().runs[0];
  write_result(sweep.result_file(run), finished(run, 0.1));
  EXPECT_NO_THROW(SweepFolder::expand(own.sweep_file, {"set.dist.threads=2"}, folder));
  EXPECT_THAT(
      message_of<ConfigError>([&] { SweepFolder::expand(own.sweep_file, moved, folder); }),
      AllOf(HasSubstr(name_of(run) + " has begun with the shards in " + own.shards.string()),
            HasSubstr("not " + other)));
}

// A sweep whose runs begin with the weights in a file.
struct OwnWeights {
  explicit OwnWeights(const std::string& text) {
    write(text);
    sweep = SweepFolder::expand(
        files.sweep("set: {train.init_from: '" + weights.string() + "'}\n" + kTwoRates), {},
        files.path("sweep"));
  }
  void write(const std::string& text) const {
    if (!text.empty()) std::ofstream(weights) << text;
  }
  SweepCase files;
  fs::path weights = files.path("w.safetensors");
  std::optional<SweepFolder> sweep;
};

TEST(SweepFolderTest, TheFirstWeightsAreFrozen) {
  const OwnWeights own("one");
  const SweepFolder& sweep = *own.sweep;
  const SweepRun& run = sweep.record().runs[0];
  EXPECT_EQ(sweep.data_fault(), "");
  RunResult result = finished(run, 0.5);
  result.inputs = sweep.checked(run).inputs;
  write_result(sweep.result_file(run), result);
  EXPECT_EQ(sweep.result(run)->inputs, run.inputs);
  own.write("other");
  const SweepRun& second = sweep.record().runs[1];
  const std::string refusal = message_of<DataError>([&] { sweep.checked(second); });
  EXPECT_THAT(refusal, AllOf(HasSubstr("run 1 ("), HasSubstr(") does not start: "),
                             HasSubstr("the weights in " + own.weights.string() + " are not")));
  for (const std::string& text : {status_table(sweep), collect_table(sweep)})
    EXPECT_THAT(text, HasSubstr("\n" + refusal + "\n"));
  // A result of other weights is refused by whoever reads it.
  result.inputs["train.init_from"] = std::string(16, '0');
  write_result(sweep.result_file(run), result);
  EXPECT_THAT(message_of<DataError>([&] { sweep.result(run); }),
              HasSubstr("expanded for (train.init_from);"));
}

TEST(SweepFolderTest, WeightsThatComeLaterAreFrozenByTheFirstRun) {
  OwnWeights own("");
  SweepFolder& sweep = *own.sweep;
  EXPECT_TRUE(sweep.record().runs[0].inputs.empty());
  own.write("one");
  sweep.freeze_data();
  own.write("other");
  EXPECT_THAT(SweepFolder::open(sweep.path()).data_fault(), HasSubstr("the weights in "));
}

// Only the second variant cannot go on.
TEST(SweepFolderTest, OtherWeightsOfOneVariantAreSeen) {
  const SweepCase files;
  const auto first = files.write("a.safetensors", "a"), second = files.write("b.safetensors", "b");
  const SweepFolder sweep =
      SweepFolder::expand(files.sweep("sweep: {over: {train.init_from: ['" + first.string() +
                                      "', '" + second.string() + "']}}\n"),
                          {}, files.path("sweep"));
  EXPECT_EQ(sweep.data_fault(), "");
  files.write("b.safetensors", "other");
  EXPECT_THAT(sweep.data_fault(),
              AllOf(HasSubstr("run 1 ("), HasSubstr("the weights in " + second.string())));
}

// Older versions kept the hashes of the graphs alone, under other names.
TEST(SweepFolderTest, WhatOneSideDoesNotKnowIsNoChange) {
  const Inputs old{{"data.train", "a"}};
  EXPECT_EQ(changed_input(old, {{"data.train", "a"}, {"ensemble.folds", "b"}}), "");
  EXPECT_EQ(changed_input({}, {{"data.train", "a"}}), "");
  EXPECT_EQ(changed_input({{"ensemble.folds", "b"}}, {{"ensemble.folds", "c"}}), "ensemble.folds");
  EXPECT_EQ(changed_input(old, {{"data.train", "b"}, {"ensemble.folds", "c"}}), "data.train");
}

TEST(SweepFolderTest, FoldsAreFrozen) {
  const SweepCase files;
  const auto write_folds = [&](int first) {
    std::string text = "folds: 2\ngraphs:\n";
    for (const GraphEntry& graph :
         list_graphs(tiny_shards(), Collection{"layout:xla:random"}, "train"))
      text += fmt::format("  '{}': {}\n", graph.name, first++ % 2);
    return files.write("folds.yaml", text).string();
  };
  const std::string file = write_folds(0);
  const SweepFolder sweep = SweepFolder::expand(
      files.sweep("set: {ensemble.fold_file: '" + file + "'}\nsweep: {seeds: 2, folds: 2}\n"), {},
      files.path("sweep"));
  EXPECT_EQ(sweep.data_fault(), "");
  write_folds(1);
  EXPECT_THAT(sweep.data_fault(),
              AllOf(HasSubstr("run 0 ("), HasSubstr("the folds (" + file + ") of the graphs in ")));
}

TEST(SweepFolderTest, TheBaselineIsConfirmedBesideTheChosen) {
  const ExpandedSweep sweep(
      "sweep: {seeds: 2, over: {optimizer.lr: [1e-3, 2e-3, 3e-3]}}\n"
      "choose: {by: valid, graphs: all}\n");
  const auto end = [&](int stage) {
    const std::vector<SweepRun> runs = sweep.stage_runs(stage).value();
    for (const SweepRun& run : runs)
      write_result(sweep.result_file(run), finished(run, run.variant == 2 ? 0.7 : 0.5));
  };
  end(0);
  sweep.freeze_stage(1);
  const std::vector<SweepRun> fresh = sweep.stage_runs(1).value();
  ASSERT_EQ(fresh.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(fresh[i].variant, i < 3 ? 2 : 0);
    EXPECT_EQ(fresh[i].seed, 3 + i % 3);
  }
  EXPECT_EQ(sweep.stale_reason(1), "");
  end(1);
  EXPECT_THAT(collect_table(sweep), AllOf(HasSubstr("\nchosen: optimizer.lr=3e-3 "),
                                          HasSubstr("\nbaseline: optimizer.lr=1e-3\n"
                                                    "its score: 0.5000")));
  // Its members are in no ensemble of the chosen ones.
  EXPECT_EQ(finished_runs(sweep.path(), "").size(), 3u);
  EXPECT_EQ(finished_runs(sweep.path(), "").front(), sweep.run_folder(fresh[0]));
  EXPECT_EQ(finished_runs(sweep.path(), "0").front(), sweep.run_folder(fresh[3]));
}

// Fewer runs are needed then than the stage can have.
TEST(SweepFolderTest, AChosenBaselineIsConfirmedOnce) {
  const ExpandedSweep sweep(kTwoRates + "choose: {by: valid, graphs: all}\n");
  EXPECT_THAT(status_table(sweep), HasSubstr("\n0 of 8 runs have finished\n"));
  for (const SweepRun& run : sweep.record().runs)
    write_result(sweep.result_file(run), finished(run, run.variant == 0 ? 0.7 : 0.5));
  sweep.freeze_stage(1);
  const std::vector<SweepRun> fresh = sweep.stage_runs(1).value();
  EXPECT_EQ(fresh.size(), 3u);
  for (const SweepRun& run : fresh) write_result(sweep.result_file(run), finished(run, 0.6));
  EXPECT_THAT(status_table(sweep), HasSubstr("\n5 of 5 runs have finished\n"));
  EXPECT_THAT(collect_table(sweep), HasSubstr("\nit is the first variant, the baseline: "));
  EXPECT_EQ(sweep.stale_reason(1), "");
}

TEST(SweepFolderTest, VariantsAreNotMixedIntoOneEnsemble) {
  const ExpandedSweep sweep(kTwoRates);
  const std::vector<SweepRun>& runs = sweep.record().runs;
  for (const SweepRun& run : runs) write_result(sweep.result_file(run), finished(run, 0.5));
  const std::string path = sweep.path().string();
  EXPECT_THAT(message_of<ConfigError>([&] { run_folders({path}); }),
              HasSubstr("has several variants of layout:xla:random, which are no members of one "
                        "ensemble; name one as " +
                        path + ":NUMBER: 0 (optimizer.lr=1e-3), 1 (optimizer.lr=1e-2)"));
  EXPECT_THAT(message_of<ConfigError>([&] { run_folders({path + ":9"}); }),
              HasSubstr("no run of variant 9 of \"list\", which has variants 0 (optimizer.lr="));
  EXPECT_THAT(run_folders({path + ":1"}), ElementsAre(sweep.run_folder(runs[1])));
  EXPECT_THAT(run_folders({path + ":optimizer.lr=1e-3"}), ElementsAre(sweep.run_folder(runs[0])));
}

TEST(SweepFolderTest, TheStatusSaysHowFarARunIsAndWhoTrainsIt) {
  const ExpandedSweep sweep(kTwoRates);
  const std::vector<SweepRun>& runs = sweep.record().runs;
  RunResult result = finished(runs[0], 0.5);
  result.train_seconds = 90;
  write_result(sweep.result_file(runs[0]), result);
  setenv("SLURM_JOB_ID", "77", 1);
  const RunClaimFile claim = sweep.claim(runs[1]);
  unsetenv("SLURM_JOB_ID");
  fs::create_directories(sweep.run_folder(runs[1]));
  std::ofstream(sweep.run_folder(runs[1]) / "metrics.jsonl")
      << R"({"kind":"evaluation","step":3,"rows":4,"held_out_only":false,"members":[0.5],)"
         R"("ensemble":0.5,"train_seconds":1.5})"
         "\n";
  EXPECT_THAT(status_table(sweep),
              AllOf(HasSubstr("1 of 2 runs have finished, about 1:30 of training left"),
                    HasSubstr("running: optimizer.lr=1e-2, member 0, at step 3, by tpudist sweep "
                              "run (job 77), process ")));
}

TEST(SweepFolderTest, TheNextCommandFollowsTheRuns) {
  const SweepCase files;
  const SweepFolder sweep = SweepFolder::expand(files.sweep(kTwoRates), {}, files.path("my sweep"));
  const std::string path = "'" + sweep.path().string() + "'";
  const std::vector<SweepRun>& runs = sweep.record().runs;
  const std::string train =
      "tpudist sweep run " + path + " (Slurm: tpudist sweep submit " + path + ")";
  EXPECT_EQ(next_command(sweep), train);
  RunResult result;
  result.id = runs[0].id;
  write_result(sweep.result_file(runs[0]), result);
  EXPECT_EQ(next_command(sweep), train);
  write_result(sweep.result_file(runs[1]), finished(runs[1], 0.5));
  EXPECT_THAT(next_command(sweep), HasSubstr("tpudist sweep retry " + path + " if the cause lies"));
  write_result(sweep.result_file(runs[0]), finished(runs[0], 0.5));
  EXPECT_EQ(next_command(sweep), "tpudist sweep collect " + path);
  EXPECT_EQ(next_command(sweep, true), "tpudist report " + path);
}

// A rung trains a part of the steps, and a run that failed needs no more time.
TEST(SweepFolderTest, TheTimeLeftIsByStepsOfEachStage) {
  const ExpandedSweep sweep(
      "sweep: {over: {optimizer.lr: [1e-3, 2e-3, 3e-3, 4e-3]}}\n"
      "halving: {rungs: 2, keep: 2}\nchoose: {by: valid, baseline: none}\n");
  const std::vector<SweepRun>& runs = sweep.record().runs;
  RunResult result = finished(runs[0], 0.5);
  result.train_seconds = 10;
  write_result(sweep.result_file(runs[0]), result);
  result = {};
  result.id = runs[1].id;
  write_result(sweep.result_file(runs[1]), result);
  // Left: two of half the steps, two of all in the second rung, and three that confirm.
  EXPECT_THAT(status_table(sweep),
              HasSubstr("\n1 of 9 runs have finished, about 2:00 of training left\n"));
}

TEST(SweepFolderTest, MissingFoldersAreMadeAgain) {
  const ExpandedSweep sweep(kTwoRates);
  for (const char* part : {"claims", "results", "runs"}) fs::remove_all(sweep.path() / part);
  const SweepFolder again = SweepFolder::open(sweep.path());
  EXPECT_EQ(again.state(again.record().runs[0]), RunState::waiting);
  EXPECT_THAT(collect_table(again), HasSubstr("no run has ended yet"));
  fs::remove_all(sweep.path() / "results");
  write_result(again.result_file(again.record().runs[0]), finished(again.record().runs[0], 0.5));
  EXPECT_EQ(again.state(again.record().runs[0]), RunState::finished);
}

TEST(SweepFolderTest, RunsAreCheckedAgainstTheirIds) {
  const ExpandedSweep sweep(kTwoRates + "choose: {by: valid}\n");
  const std::vector<SweepRun>& runs = sweep.record().runs;
  write_result(sweep.result_file(runs[0]), finished(runs[1], 0.5));
  EXPECT_THAT(message_of<DataError>([&] { sweep.result(runs[0]); }),
              AllOf(HasSubstr(sweep.result_file(runs[0]).string()), HasSubstr(runs[1].id)));
  for (const SweepRun& run : runs) write_result(sweep.result_file(run), finished(run, 0.5));
  sweep.freeze_stage(1);
  std::vector<SweepRun> twice = sweep.stage_runs(1).value();
  twice[1].id = twice[0].id;
  write_stage_runs(sweep.path() / "stage-1.json", twice);
  EXPECT_THAT(message_of<DataError>([&] { sweep.stage_runs(1); }),
              HasSubstr("stage-1.json: damaged: runs 2 and 3 are the same"));
  SweepRecord record = sweep.record();
  record.runs[0].config.replace(record.runs[0].config.find("steps: 4"), 8, "steps: 5");
  write_record(sweep.path() / "sweep.json", record);
  const SweepFolder edited = SweepFolder::open(sweep.path());
  EXPECT_THAT(message_of<DataError>([&] { edited.checked(edited.record().runs[0]); }),
              HasSubstr("sweep.json: the settings of run 0 are not those of its id"));
  EXPECT_NO_THROW(edited.checked(edited.record().runs[1]));
}

// Variants of different experiments are never compared: each has its own best of equal ones.
TEST(SweepFolderTest, TablesAreOfOneExperimentEach) {
  const SweepCase files;
  files.write("second.yaml", "include: tiny.yaml\ntrain: {steps: 5}\n");
  const SweepFolder sweep =
      SweepFolder::expand(files.write("both.yaml",
                                      "name: both\nexperiments: [tiny.yaml, second.yaml]\nset: {}\n"
                                      "sweep: {seeds: 2, over: {optimizer.lr: [1e-3, 1e-2]}}\n"),
                          {}, files.path("sweep"));
  for (const SweepRun& run : sweep.record().runs) {
    const double seed = static_cast<double>(*run.seed);
    // Of one variant the second seed is the better one, of the other the first one.
    const double score = 0.5 + 0.05 * (run.index % 4 < 2 ? seed : -seed);
    RunResult result = finished(run, run.experiment == 0 ? score : 0.1 * score);
    if (run.index == 7) result.members[0].valid.reset();  // all scores are equal
    write_result(sweep.result_file(run), result);
  }
  const std::string table = collect_table(sweep);
  EXPECT_THAT(table, HasSubstr("the tables are not compared"));
  EXPECT_THAT(table, HasSubstr("* a score is undefined"));
  const std::string path = sweep.path().string();
  EXPECT_THAT(table, HasSubstr("the best two: `tpudist compare " + path + ":0 " + path + ":1`"));
  EXPECT_THAT(table, HasSubstr(" --with " + path + ":1 " + path + "-2:1 --looks 2`"));
}

// The mean of survivors is marked, and the column shows who failed.
TEST(SweepFolderTest, TablesShowFailedMembers) {
  const ExpandedSweep sweep(kTwoRates, "ensemble: {members: 3}\n");
  for (const SweepRun& run : sweep.record().runs) {
    RunResult result = finished(run, 0.5);
    for (const int member : {1, 2}) {
      const bool failed = run.variant == 0;
      const auto score = failed ? std::nullopt : std::optional(0.5);
      result.members.push_back({member, failed, score, std::nullopt});
    }
    write_result(sweep.result_file(run), result);
  }
  EXPECT_THAT(collect_table(sweep),
              AllOf(HasSubstr("  2 members          1           0.5000                     - *\n"),
                    HasSubstr("* a score is undefined")));
  EXPECT_EQ(collect_json(sweep).at("stages").at(0).at("variants").at(0).at("failed_members"), 2);
}

TEST(SweepFolderTest, DamagedFilesAreNamed) {
  const ExpandedSweep sweep(kTwoRates);
  const SweepRun& run = sweep.record().runs[0];
  std::ofstream(sweep.result_file(run)) << "{\"format\": \"tpudist sweep re";
  EXPECT_THAT(message_of<DataError>([&] { sweep.result(run); }),
              HasSubstr(sweep.result_file(run).string() + ": damaged"));
  // Names the key that is missing or has another type.
  const auto change = [](const fs::path& path, const auto& edit) {
    auto json = nlohmann::json::parse(read_text_file(path));
    edit(json);
    std::ofstream(path) << json;
  };
  write_result(sweep.result_file(run), finished(run, 0.5));
  change(sweep.result_file(run), [](auto& json) { json["members"][0].erase("failed"); });
  EXPECT_THAT(message_of<DataError>([&] { sweep.result(run); }),
              HasSubstr(sweep.result_file(run).string() +
                        ": damaged: members: it has no \"failed\"; remove"));
  write_result(sweep.result_file(run), finished(run, 0.5));
  change(sweep.result_file(run), [](auto& json) { json["steps"] = "many"; });
  EXPECT_THAT(message_of<DataError>([&] { sweep.result(run); }),
              HasSubstr(": damaged: steps: type must be number, but is string; remove"));
  SweepRecord record = sweep.record();
  for (const char* key : {"data", "halves", "baseline", "choose_by"}) {  // as older versions had it
    write_record(sweep.path() / "sweep.json", record);
    change(sweep.path() / "sweep.json", [&](auto& json) { json.erase(key); });
    EXPECT_THAT(
        message_of<DataError>([&] { SweepFolder::open(sweep.path()); }),
        HasSubstr(fmt::format("sweep.json: damaged: it has no \"{}\"; expand the sweep again "
                              "into another folder",
                              key)));
  }
  record.variant_experiment[1] = 5;
  write_record(sweep.path() / "sweep.json", record);
  EXPECT_THAT(message_of<DataError>([&] { SweepFolder::open(sweep.path()); }),
              HasSubstr("sweep.json: damaged: run 1 and its variant"));
  std::ofstream(sweep.path() / "sweep.json") << "{}";
  EXPECT_THAT(message_of<DataError>([&] { SweepFolder::open(sweep.path()); }),
              HasSubstr("sweep.json: damaged"));
}

}  // namespace
}  // namespace tpudist::test
