#include "train/loop/trainer.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "core/error.hpp"
#include "core/log.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/run_folder.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

using Trainer = TrainTest;

TEST_F(Trainer, GivesTheSameBitsForAnyNumberOfThreads) {
  const Experiment experiment = tiny_experiment();
  const std::uint64_t one = run(experiment, folder / "a", 1).parameter_hash;
  EXPECT_EQ(run(experiment, folder / "b", 2).parameter_hash, one);
  EXPECT_EQ(run(experiment, folder / "c", 3).parameter_hash, one);
}

TEST_F(Trainer, ResumesWithTheSameBits) {
  const Experiment experiment = tiny_experiment({"train.checkpoint_every=2"});
  const std::uint64_t whole = run(experiment, folder / "whole").parameter_hash;
  const TrainOutcome stopped = run(experiment, folder / "cut", 1, false, stop_after(3));
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.steps, 3);
  EXPECT_FALSE(stopped.evaluation.has_value());
  const TrainOutcome resumed = run(experiment, folder / "cut", 2, true);
  EXPECT_EQ(resumed.steps, 6);
  EXPECT_EQ(resumed.parameter_hash, whole);
}

TEST_F(Trainer, MembersDoNotDependOnEachOther) {
  const std::string seeds = "ensemble={members: 3, vary: [init], folds: none}";
  const Experiment three = tiny_experiment({seeds});
  const Experiment one = tiny_experiment({seeds, "ensemble.members=1"});
  run(three, folder / "three");
  run(one, folder / "one");
  const TrainedRun a = open_run(folder / "three"), b = open_run(folder / "one");
  ASSERT_EQ(a.flat.size(), 3 * b.flat.size());
  EXPECT_TRUE(std::equal(b.flat.begin(), b.flat.end(), a.flat.begin()));
}

TEST_F(Trainer, DenseAndRefinedPlansLearnTheSame) {
  run(tiny_experiment({"plan=dense"}), folder / "dense");
  run(tiny_experiment({"plan=refined"}), folder / "refined");
  const TrainedRun a = open_run(folder / "dense"), b = open_run(folder / "refined");
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.flat.size(); ++i) {
    difference += std::pow(a.flat[i] - b.flat[i], 2);
    size += std::pow(a.flat[i], 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 1e-3);
}

// [steps][members]
std::vector<std::vector<double>> logged_losses(const std::filesystem::path& folder) {
  std::ifstream file(RunFolder::open(folder).metrics());
  std::vector<std::vector<double>> losses;
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record["kind"] == "step") losses.push_back(record["loss"].get<std::vector<double>>());
  }
  return losses;
}

// The largest relative difference in the steps `first` .. `last` - 1.
double largest_difference(const std::vector<std::vector<double>>& a,
                          const std::vector<std::vector<double>>& b, int first, int last) {
  double largest = 0;
  for (int step = first; step < last; ++step) {
    for (std::size_t m = 0; m < a[step].size(); ++m) {
      largest = std::max(largest, std::abs(a[step][m] / b[step][m] - 1));
    }
  }
  return largest;
}

// The plans differ by rounding only (tests/models/refined_equality_test), which training amplifies
// step by step, from 1e-7 to 5e-4 here. A learning rate that is off by 1e-4 makes 5 times that
// difference.
TEST_F(Trainer, DenseAndRefinedPlansGiveTheSameLossCurves) {
  constexpr int kSteps = 40;
  const auto curve = [&](const std::string& plan) {
    run(tiny_experiment({"plan=" + plan, "model.readout.scale=0.1", "optimizer.lr=3e-4",
                         "batch.slates=8", "ensemble.folds=none", "train.log_every=1",
                         fmt::format("train.steps={}", kSteps)}),
        folder / plan);
    return logged_losses(folder / plan);
  };
  const auto dense = curve("dense"), refined = curve("refined");
  ASSERT_EQ(dense.size(), kSteps);
  ASSERT_EQ(refined.size(), kSteps);
  EXPECT_LT(largest_difference(dense, refined, 0, 10), 5e-5);
  EXPECT_LT(largest_difference(dense, refined, 10, kSteps), 3e-3);
  EXPECT_LT(dense.back()[0], dense.front()[0] - 0.1);  // it did learn in between
}

TEST_F(Trainer, DrawsRowsForEachMemberWhenAsked) {
  const TrainOutcome shared = run(tiny_experiment(), folder / "shared");
  const TrainOutcome own = run(tiny_experiment({"batch.order=per_member"}), folder / "own");
  EXPECT_NE(shared.parameter_hash, own.parameter_hash);
}

TEST_F(Trainer, TrainsTileGraphsWithSeveralSlatesInAUnit) {
  const Experiment experiment =
      tiny_experiment({"data.collection=tile:xla", "model.preset=latenciaga_tile", "batch.slates=6",
                       "batch.unit_slates=4", "ensemble.folds=none"});
  const TrainOutcome outcome = run(experiment, folder / "tile");
  ASSERT_TRUE(outcome.evaluation.has_value());
  EXPECT_TRUE(std::isfinite(outcome.evaluation->ensemble_mean()));
}

TEST_F(Trainer, MemoryKeysChangeNoBit) {
  const std::uint64_t plain = run(tiny_experiment(), folder / "plain").parameter_hash;
  EXPECT_EQ(run(tiny_experiment({"batch.member_chunk=1"}), folder / "members").parameter_hash,
            plain);
  EXPECT_EQ(run(tiny_experiment({"train.recompute=true"}), folder / "again").parameter_hash, plain);
}

// Of a network with dropout of features and of edges, for losses that always, sometimes or never
// ignore a shift of the scores.
TEST_F(Trainer, RecomputingBlocksChangesNoBit) {
  const std::string model =
      "model={encoder: {width: 8}, blocks: [{layer: dropout}, {layer: residual, blocks: [{layer: "
      "sage, width: 8, activation: gelu}, {layer: dropout}]}, {layer: sage, width: 6, aggregation: "
      "max}, {layer: join_config, width: 5}], readout: {pool: sum, scale: 1}}";
  for (const std::string loss :
       {"{pairwise_hinge: {weight: 1}}", "{list_mle: {weight: 1, clip_norm: 1e9}}",
        "{list_mle: {weight: 1, clip_norm: 0.01}}", "{mape: {weight: 1}}"}) {
    SCOPED_TRACE(loss);
    const auto hash = [&](const std::string& recompute) {
      return run(tiny_experiment({model, "loss=" + loss, "batch.edge_dropout=0.1",
                                  "train.recompute=" + recompute}),
                 folder / std::to_string(std::hash<std::string>()(loss + recompute)))
          .parameter_hash;
    };
    EXPECT_EQ(hash("true"), hash("false"));
  }
}

TEST_F(Trainer, TheLastEvaluationTakesAllRowsASampleOrNone) {
  const auto last = [&](const std::string& which) {
    return run(tiny_experiment({"train.last_evaluation=" + which, "train.evaluate_rows=5",
                                "train.evaluate_every=3"}),
               folder / which);
  };
  const TrainOutcome all = last("all"), sampled = last("sampled"), none = last("none");
  ASSERT_TRUE(all.evaluation && sampled.evaluation);
  EXPECT_FALSE(none.evaluation.has_value());
  EXPECT_FALSE(none.stopped);
  EXPECT_EQ(all.evaluation->most_rows, 0);
  EXPECT_EQ(sampled.evaluation->most_rows, 5);
  ASSERT_FALSE(sampled.evaluation->ensemble.empty());
  for (std::size_t g = 0; g < sampled.evaluation->ensemble.size(); ++g) {
    EXPECT_EQ(sampled.evaluation->ensemble[g].configs, 5);
    EXPECT_GT(all.evaluation->ensemble[g].configs, 5);
  }
  EXPECT_NE(evaluation_table(*sampled.evaluation).find("at most 5 rows a graph"),
            std::string::npos);
  EXPECT_EQ(evaluation_json(*sampled.evaluation)["most_rows"], 5);
  // How much is scored decides no number of the training.
  EXPECT_EQ(all.parameter_hash, sampled.parameter_hash);
  EXPECT_EQ(all.parameter_hash, none.parameter_hash);
}

// Which rows the last evaluation takes may change when a run is resumed.
TEST_F(Trainer, TheLastEvaluationMayChangeOnResume) {
  run(tiny_experiment({"train.last_evaluation=none"}), folder / "run");
  const TrainOutcome again =
      run(tiny_experiment({"train.last_evaluation=all"}), folder / "run", 1, true);
  EXPECT_TRUE(again.evaluation.has_value());
}

TEST_F(Trainer, TheLastEvaluationIsStoppedOnRequestAndMadeByResuming) {
  const Experiment experiment = tiny_experiment();
  const TrainOutcome whole = run(experiment, folder / "whole");
  // At six steps, and before the graphs of the evaluation
  const TrainOutcome stopped = run(experiment, folder / "run", 1, false, stop_after(6));
  EXPECT_TRUE(stopped.stopped);
  EXPECT_FALSE(stopped.out_of_time);
  EXPECT_EQ(stopped.steps, 6);
  EXPECT_FALSE(stopped.evaluation.has_value());
  EXPECT_FALSE(std::filesystem::exists(folder / "run/scores.json"));
  EXPECT_FALSE(std::filesystem::exists(best_checkpoint_path(folder / "run/checkpoints")));
  const TrainOutcome resumed = run(experiment, folder / "run", 1, true);
  EXPECT_FALSE(resumed.stopped);
  ASSERT_TRUE(resumed.evaluation.has_value());
  EXPECT_EQ(resumed.evaluation->member_means(), whole.evaluation->member_means());
}

TEST_F(Trainer, LearnsTheTinyData) {
  const TrainOutcome before =
      run(tiny_experiment({"train.steps=0", "ensemble.folds=none"}), folder / "before");
  const TrainOutcome after =
      run(tiny_experiment({"train.steps=120", "ensemble.folds=none"}), folder / "after");
  EXPECT_GT(after.evaluation->ensemble_mean(), before.evaluation->ensemble_mean() + 0.1);
}

// In the newest checkpoint of a run.
void spoil_newest(const std::filesystem::path& folder, const Experiment& experiment, int member) {
  spoil_member(list_checkpoints(folder / "checkpoints").front(), experiment, member);
}

// Trains two steps, and on after member 1 was spoilt; `stop` as in `run`.
TrainOutcome run_with_a_failed_member(
    const Experiment& experiment, const std::filesystem::path& folder,
    const std::function<bool()>& stop = [] { return false; }) {
  EXPECT_EQ(run(experiment, folder, 1, false, stop_after(2)).steps, 2);
  spoil_newest(folder, experiment, 1);
  return run(experiment, folder, 1, true, stop);
}

// Of all three members but member 1.
void expect_same_bits_of_others(const TrainedRun& a, const TrainedRun& b) {
  ASSERT_EQ(a.flat.size(), b.flat.size());
  const std::size_t length = a.flat.size() / 3;
  for (const std::size_t member : {0, 2}) {
    EXPECT_TRUE(std::ranges::equal(std::span(a.flat).subspan(member * length, length),
                                   std::span(b.flat).subspan(member * length, length)))
        << member;
  }
}

TEST_F(Trainer, OneFailedMemberLeavesTheOthersAsTheyWere) {
  const Experiment experiment = tiny_experiment();
  run(experiment, folder / "whole");
  const TrainOutcome outcome = run_with_a_failed_member(experiment, folder / "hurt");
  EXPECT_EQ(outcome.steps, 6);

  const TrainedRun whole = open_run(folder / "whole"), hurt = open_run(folder / "hurt");
  EXPECT_EQ(hurt.use, (std::vector<bool>{true, false, true}));
  expect_same_bits_of_others(whole, hurt);
}

TEST_F(Trainer, EvaluationLeavesAFailedMemberOut) {
  const Experiment experiment = tiny_experiment();
  const TrainOutcome whole = run(experiment, folder / "whole");
  const TrainOutcome hurt = run_with_a_failed_member(experiment, folder / "hurt");
  ASSERT_TRUE(hurt.evaluation.has_value());
  EXPECT_EQ(hurt.evaluation->used, (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(std::isfinite(hurt.evaluation->ensemble_mean()));
  const auto before = whole.evaluation->member_means(), after = hurt.evaluation->member_means();
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(after[2], before[2]);
}

// No loss has shown it yet: its weights became so in the last step.
TEST_F(Trainer, EvaluationGoesOnBesideAMemberWhoseScoresAreNotFinite) {
  const Experiment experiment = tiny_experiment({"predictions.rows=all"});
  const TrainOutcome whole = run(experiment, folder / "run");
  spoil_newest(folder / "run", experiment, 1);
  const TrainOutcome hurt = run(experiment, folder / "run", 1, true);
  ASSERT_TRUE(hurt.evaluation.has_value());
  EXPECT_TRUE(std::isfinite(hurt.evaluation->ensemble_mean()));
  const std::vector<double> means = hurt.evaluation->member_means();
  EXPECT_TRUE(std::isnan(means[1]));
  EXPECT_EQ(means[0], whole.evaluation->member_means()[0]);
  ASSERT_EQ(hurt.out_of_fold.size(), 3u);
  EXPECT_TRUE(std::isnan(hurt.out_of_fold[1].score));
  EXPECT_EQ(hurt.out_of_fold[0].score, whole.out_of_fold[0].score);
}

TEST_F(Trainer, RefusesAValidationGraphThatIsTooLargeBeforeTheFirstStep) {
  ThreadPool pool(1);
  const Experiment tiny = tiny_experiment();
  const Dataset train = Dataset::open(tiny.training_data(), pool),
                valid = Dataset::open(tiny.data.evaluation("valid"), pool);
  int small = 0, large = 0;
  for (int g = 0; g < train.size(); ++g)
    if (train.graph(g).nodes < train.graph(small).nodes) small = g;
  for (int g = 0; g < valid.size(); ++g)
    if (valid.graph(g).nodes > valid.graph(large).nodes) large = g;
  ASSERT_LT(train.graph(small).nodes, valid.graph(large).nodes);
  std::vector<std::string> overrides{
      fmt::format("model={{blocks: [{{layer: self_attention, width: 4, max_nodes: {}}}]}}",
                  train.graph(small).nodes),
      fmt::format("data.include.train=['{}']", train.graph(small).name), "ensemble.folds=none"};
  EXPECT_THAT(test::message_of<DataError>([&] { run(tiny_experiment(overrides), folder / "run"); }),
              HasSubstr(fmt::format("graph {} has {} nodes", valid.graph(large).name,
                                    valid.graph(large).nodes)));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/metrics.jsonl"));
  overrides.emplace_back("train.last_evaluation=none");
  EXPECT_EQ(run(tiny_experiment(overrides), folder / "other").steps, 6);
}

TEST_F(Trainer, WarnsWhereRoundingAloneRanks) {
  const auto warned = [&](const std::string& last, const std::string& pool) {
    static int count = 0;
    const Experiment experiment = tiny_experiment(
        {fmt::format("model={{blocks: [{{layer: sage, width: 4}}{}], readout: {{pool: {}}}}}", last,
                     pool),
         "train.steps=1"});
    ::testing::internal::CaptureStderr();
    set_up_logging(0, 1);  // on standard error
    run(experiment, folder / std::to_string(++count));
    spdlog::default_logger()->flush();
    return ::testing::internal::GetCapturedStderr().find("rounding noise") != std::string::npos;
  };
  const std::string norm = ", {layer: instance_norm}";
  EXPECT_TRUE(warned(norm, "l2_sum"));
  EXPECT_TRUE(warned(norm, "sum"));
  EXPECT_FALSE(warned(norm, "max+sum"));
  EXPECT_FALSE(warned(norm + ", {layer: sage, width: 4}", "l2_sum"));
  EXPECT_FALSE(warned("", "l2_sum"));
}

TEST_F(Trainer, ResumesBesideAFailedMemberWithTheSameBits) {
  const Experiment experiment = tiny_experiment();
  run_with_a_failed_member(experiment, folder / "once");
  const auto stop = stop_after(2);
  const TrainOutcome stopped = run_with_a_failed_member(experiment, folder / "twice", stop);
  ASSERT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.steps, 4);
  EXPECT_EQ(run(experiment, folder / "twice", 2, true).steps, 6);

  const TrainedRun once = open_run(folder / "once"), twice = open_run(folder / "twice");
  EXPECT_EQ(twice.use, (std::vector<bool>{true, false, true}));
  expect_same_bits_of_others(once, twice);
}

}  // namespace
}  // namespace tpudist::test
