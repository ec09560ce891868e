#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/launch/ranks_case.hpp"

// The program on several ranks of this machine: what comes out does not depend on their number, and
// ranks that differ or fail end the job with one clear line.
namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

TEST_F(Ranks, TrainTheSameParametersWhateverTheirNumber) {
  const std::string alone = train(0, "zero").output;
  const std::string expected = value_of(alone, "parameters: ");
  const std::string averages = value_of(alone, "averages: ");
  ASSERT_EQ(expected.size(), 16u);
  ASSERT_EQ(averages.size(), 16u);
  for (const int ranks : {2, 3}) {
    const std::string run = "train-" + std::to_string(ranks);
    const std::string outcome = output_of(train(ranks, run));
    EXPECT_EQ(value_of(outcome, "parameters: "), expected);
    EXPECT_EQ(value_of(outcome, "averages: "), averages);
    // Only one rank tells of the steps.
    EXPECT_EQ(count_of(outcome, "step       4/4"), 1) << outcome;
    // Without the checkpoint of the last step the run goes on at the one before.
    ASSERT_TRUE(fs::remove(path(run) + "/checkpoints/step-000000004.h5"));
    const Outcome resumed = train(5 - ranks, run, "--resume");
    EXPECT_EQ(value_of(resumed.output, "parameters: "), expected) << resumed.output;
    EXPECT_EQ(value_of(resumed.output, "averages: "), averages) << resumed.output;
    EXPECT_EQ(count_of(resumed.output, "resuming at step 2"), 1) << resumed.output;
  }
}

// Without a learning rate the second score is no better than the first.
TEST_F(Ranks, StopEarlyTogether) {
  for (const int ranks : {0, 2}) {
    const std::string outcome =
        output_of(train(ranks, "early-" + std::to_string(ranks),
                        "optimizer.lr=0 train.evaluate_every=1 train.early_stop.patience=1"));
    EXPECT_EQ(value_of(outcome, "steps: "), "2");
    EXPECT_EQ(count_of(outcome, "stopped at step 2 (train.early_stop)"), 2) << outcome;
  }
}

TEST_F(Ranks, ScoreIntoTheSameFilesWhateverTheirNumber) {
  const std::string run = path("one");
  const auto same = [&](const std::string& command, const std::vector<std::string>& files) {
    for (const int ranks : {1, 2}) {
      std::string arguments = command;
      for (const std::string& file : files)
        arguments += " --" + file + " " + path(file + std::to_string(ranks));
      output_of(run_ranks(ranks, arguments));
    }
    for (const std::string& file : files) {
      EXPECT_GT(content(path(file + "1")).size(), 100u) << command;
      EXPECT_EQ(content(path(file + "1")), content(path(file + "2"))) << command;
    }
  };
  same("evaluate " + run, {"json"});
  same("predict " + run + " --split valid", {"csv", "scores"});
  same("ensemble " + run + " --split valid", {"csv", "json"});
}

TEST_F(Ranks, PredictTheSameOutOfFoldWhateverTheirNumber) {
  const std::string folds =
      "predictions.rows=all ensemble.members=3 ensemble.folds=2 'ensemble.vary=[init, fold]'";
  for (const int ranks : {0, 2, 3}) {
    const std::string outcome = output_of(train(ranks, "folds-" + std::to_string(ranks), folds));
    EXPECT_EQ(count_of(outcome, "out of fold (kendall_tau"), 1) << outcome;
  }
  for (const std::string file : {"/predictions.h5", "/folds.yaml", "/scores.json"}) {
    const std::string alone = content(path("folds-0") + file);
    EXPECT_GT(alone.size(), 100u) << file;
    for (const char* run : {"folds-2", "folds-3"})
      EXPECT_EQ(content(path(run) + file), alone) << file;
  }
}

// Parts of graphs, edges that are drawn anew in every step, slates to score in, and other losses.
TEST_F(Ranks, DrawAndReduceTheSameWhateverTheirNumber) {
  const std::string more =
      "'data.reduce={keep: config_neighbours, hops: 2, max_nodes: 12, sample: random}' "
      "batch.edge_dropout=0.3 'loss={diff_mat: {margin: 0.1, scale: inverse_margin}, mape: {unit: "
      "milliseconds}}' 'evaluate.slate={configs: 3, permutations: 2}'";
  for (const int ranks : {0, 2, 3}) {
    const std::string outcome = output_of(train(ranks, "drawn-" + std::to_string(ranks), more));
    ASSERT_EQ(value_of(outcome, "parameters: ").size(), 16u);
    std::ofstream(path("drawn-" + std::to_string(ranks) + "/parameters"))
        << value_of(outcome, "parameters: ");
    const std::string folder = path("drawn-" + std::to_string(ranks));
    EXPECT_THAT(output_of(run_ranks(ranks, "evaluate " + folder + " --draws 3 --json " + folder +
                                               "/draws.json --quiet")),
                HasSubstr("over 3 draws of nodes"));
  }
  for (const std::string file : {"/parameters", "/scores.json", "/draws.json"}) {
    const std::string alone = content(path("drawn-0") + file);
    EXPECT_GT(alone.size(), 15u) << file;
    for (const char* run : {"drawn-2", "drawn-3"})
      EXPECT_EQ(content(path(run) + file), alone) << file;
  }
  EXPECT_THAT(content(path("drawn-0") + "/scores.json"), HasSubstr("permutations"));
}

TEST_F(Ranks, RankAModuleAlikeWhateverTheirNumber) {
  std::string module;  // one of the training graphs
  for (const auto& entry : fs::directory_iterator(path("npz-shards/layout/xla/random/train")))
    module = std::max(module, entry.path().string());
  const auto ranking = [&](int ranks) {
    const std::string outcome = output_of(
        run_ranks(ranks, "rank " + module + " --run " + path("one") + " --json --top 0 --quiet"));
    EXPECT_THAT(outcome, HasSubstr("one was trained on "));  // with the time of day
    return outcome.substr(outcome.find("\n{") + 1);
  };
  const std::string alone = ranking(0);
  EXPECT_THAT(alone, HasSubstr("\"ranking\""));
  EXPECT_EQ(ranking(2), alone);
  EXPECT_EQ(ranking(3), alone);
  std::ofstream(path("damaged.npz")) << "no archive";
  const std::string damaged = output_of(
      run_ranks(2, "rank " + path("damaged.npz") + " --run " + path("one") + " --quiet"), 3);
  EXPECT_EQ(count_of(damaged, "error: "), 1) << damaged;
}

TEST_F(Ranks, SearchAModuleAlikeWhateverTheirNumber) {
  const std::string module =
      fs::directory_iterator(path("npz-shards/layout/xla/random/valid"))->path().string();
  const std::string command = "search " + module + " --run " + path("one") +
                              " --evaluations 500 --starts 3 --propose 4 --threads 1 --json "
                              "--quiet --seed ";
  const auto found = [&](int ranks) {
    const std::string outcome = output_of(run_ranks(ranks, command + "1"));
    return outcome.substr(outcome.find('{'));
  };
  const std::string alone = found(0);
  EXPECT_THAT(alone, HasSubstr("\"ranking\""));
  EXPECT_EQ(found(1), alone);
  EXPECT_EQ(found(2), alone);
  EXPECT_EQ(found(4), alone);  // one has no start
  expect_refusal(run_ranks({{command + "1"}, {command + "2"}}), 2, ": the options of the search: ");
}

TEST_F(Ranks, RefuseDifferentFolds) {
  std::ofstream(path("swapped.yaml")) << "families: {'[a-i]*': 0, '[!a-i]*': 1}\n";
  std::ofstream(path("folds.yaml")) << "families: {'[a-i]*': 1, '[!a-i]*': 0}\n";
  const std::string folds = "ensemble.folds=2 'ensemble.vary=[init, fold]' ensemble.fold_file=";
  expect_refusal(run_ranks({{train_arguments("refused-folds", folds + path("folds.yaml"))},
                            {train_arguments("refused-folds", folds + path("swapped.yaml"))}}),
                 2, ": folds: ");
}

TEST_F(Ranks, RefuseDifferentSettingsByTheirNames) {
  const std::string same = "train.evaluate_every=1 train.log_every=2 --run-dir " + path("refused");
  expect_refusal(
      run_ranks(
          {{"train " + path("tiny.yaml") + " train.checkpoint_every=1 dist.threads=1 " + same},
           {"train " + path("tiny.yaml") + " train.checkpoint_every=3 dist.threads=2 " + same}}),
      2,
      ": --threads: 1 on rank 0, 2 on rank 1; train.checkpoint_every: 1 on rank 0, 3 on rank 1; "
      "dist.threads: 1 on rank 0, 2 on rank 1; start every rank with");
  EXPECT_FALSE(fs::exists(path("refused")));
  expect_refusal(run_ranks({{train_arguments("refused")},
                            {train_arguments("refused", "data.exclude.valid=[nothing*]")},
                            {train_arguments("refused", "--dry-run")}}),
                 2,
                 ": the command: train on ranks 0, 1, train --dry-run on rank 2; "
                 "data.exclude.valid: [] on ranks 0, 2, ");
}

TEST_F(Ranks, ForecastOtherNumbersByTheLinksBetweenThem) {
  const std::string text = output_of(train(2, "forecast", "--dry-run --ranks 1,2,8 train.steps=3"));
  EXPECT_EQ(count_of(text, "(measured between these 2 ranks)"), 1) << text;
  EXPECT_EQ(count_of(text, "time of 2 ranks"), 1) << text;
  EXPECT_EQ(count_of(text, "cores of their own, 2 on a node"), 1) << text;
  EXPECT_FALSE(fs::exists(path("forecast")));
  expect_refusal(run_ranks({{train_arguments("forecast", "--dry-run --ranks 2")},
                            {train_arguments("forecast", "--dry-run --ranks 2,4")}}),
                 2, ": --ranks: 2 on rank 0, 2,4 on rank 1");
}

TEST_F(Ranks, RefuseDifferentData) {
  const std::string other = " data.shards=" + path("other");
  expect_refusal(
      run_ranks({{train_arguments("refused-data")}, {train_arguments("refused-data", other)}}), 2,
      ": training data: ");
  const std::string evaluate = "evaluate " + path("one") + " --data ";
  expect_refusal(run_ranks({{evaluate + path("shards")}, {evaluate + path("other")}}), 2,
                 ": data of layout:xla:random valid: ");
}

TEST_F(Ranks, RefuseDifferentCheckpointsOfARun) {
  ASSERT_EQ(train(0, "there/run", "seed.init=2 train.steps=3").exit_code, 0);
  fs::create_directories(path("here"));
  fs::copy(path("one"), path("here/run"), fs::copy_options::recursive);
  for (const std::string command : {"evaluate run", "predict run --csv x", "ensemble run"}) {
    const Outcome outcome =
        run_ranks({{command, "--wdir " + path("here")}, {command, "--wdir " + path("there")}});
    expect_refusal(outcome, 2, ": run: step: 4 on rank 0, 3 on rank 1; run: parameters: ");
  }
}

TEST_F(Ranks, TellOfTheErrorsOfEachRankOnce) {
  // Before MPI starts: on one rank alone, on both alike, and different ones.
  const std::string good = train_arguments("errors"), wrong = "train --no-such-option";
  expect_refusal(run_ranks({{good}, {wrong}}), 2, " (rank 1): ");
  expect_refusal(run_ranks(2, train_arguments("errors", "batch.slats=3")), 2, ": ");
  EXPECT_THAT(output_of(run_ranks({{wrong}, {train_arguments("errors", "batch.slats=3")}}), 2),
              AllOf(HasSubstr("tpudist: error (rank 0): "),
                    ContainsRegex("tpudist: error \\(rank 1\\): .*\n?.*slats")));
  // Afterwards.
  const Outcome no_data =
      run_ranks({{good}, {train_arguments("errors", "data.shards=" + path("none"))}});
  EXPECT_THAT(no_data.output, HasSubstr("tpudist: error (rank 1): "));
  EXPECT_THAT(no_data.output, Not(HasSubstr("rank 0):")));
  EXPECT_TRUE(no_data.exit_code == 2 || no_data.exit_code == 3) << no_data.exit_code;
}

}  // namespace
}  // namespace tpudist::test
