#include "train/loop/trainer.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "dist/self_communicator.hpp"
#include "models/threads.hpp"
#include "tests/train/tiny_data.hpp"
#include "train/scoring/inference.hpp"
#include "train/state/checkpoint.hpp"
#include "train/state/checkpoint_folder.hpp"

namespace tpudist {
namespace {

using testing::TempDir;
using testing::tiny_experiment;

// Trains in this process alone and returns the outcome.
TrainOutcome run(
    const Experiment& experiment, const std::filesystem::path& folder, int threads = 1,
    bool resume = false, std::function<bool()> stop = [] { return false; }) {
  const auto world = make_self_communicator();
  ThreadPool pool(threads, use_one_thread_per_worker);
  NoProgress progress;
  JobContext context{*world, pool, NodePlace{}, progress};
  const RunFolder run_folder = RunFolder::exists(folder)
                                   ? RunFolder::open(folder)
                                   : RunFolder::create(folder, experiment.resolved_yaml);
  return train(experiment, run_folder, resume, context, stop);
}

TEST(Trainer, GivesTheSameBitsForAnyNumberOfThreads) {
  const TempDir folder;
  const Experiment experiment = tiny_experiment();
  const std::uint64_t one = run(experiment, folder / "a", 1).parameter_hash;
  EXPECT_EQ(run(experiment, folder / "b", 2).parameter_hash, one);
  EXPECT_EQ(run(experiment, folder / "c", 3).parameter_hash, one);
}

TEST(Trainer, ResumesWithTheSameBits) {
  const TempDir folder;
  const Experiment experiment = tiny_experiment({"train.checkpoint_every=2"});
  const std::uint64_t whole = run(experiment, folder / "whole").parameter_hash;
  int asked = 0;
  const TrainOutcome stopped =
      run(experiment, folder / "cut", 1, false, [&] { return ++asked > 3; });
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.steps, 3);
  EXPECT_FALSE(stopped.evaluation.has_value());
  const TrainOutcome resumed = run(experiment, folder / "cut", 2, true);
  EXPECT_EQ(resumed.steps, 6);
  EXPECT_EQ(resumed.parameter_hash, whole);
}

TEST(Trainer, FallsBackToTheCheckpointBeforeADamagedOne) {
  const TempDir folder;
  const Experiment experiment = tiny_experiment({"train.checkpoint_every=2"});
  const std::uint64_t whole = run(experiment, folder / "run").parameter_hash;
  const auto newest = list_checkpoints(folder / "run/checkpoints").front();
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) / 2);
  EXPECT_EQ(run(experiment, folder / "run", 1, true).parameter_hash, whole);
}

TEST(Trainer, RefusesACheckpointOfOtherSettings) {
  const TempDir folder;
  run(tiny_experiment(), folder / "run");
  EXPECT_THROW(run(tiny_experiment({"optimizer.lr=0.01"}), folder / "run", 1, true), ConfigError);
}

TEST(Trainer, MembersDoNotDependOnEachOther) {
  const TempDir folder;
  const Experiment three = tiny_experiment({"ensemble.vary=[init]"});
  const Experiment one = tiny_experiment({"ensemble.vary=[init]", "ensemble.members=1"});
  run(three, folder / "three");
  run(one, folder / "one");
  const TrainedRun a = open_run(folder / "three"), b = open_run(folder / "one");
  ASSERT_EQ(a.flat.size(), 3 * b.flat.size());
  EXPECT_TRUE(std::equal(b.flat.begin(), b.flat.end(), a.flat.begin()));
}

TEST(Trainer, DenseAndRefinedPlansLearnTheSame) {
  const TempDir folder;
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
TEST(Trainer, DenseAndRefinedPlansGiveTheSameLossCurves) {
  const TempDir folder;
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
  EXPECT_LT(largest_difference(dense, refined, 0, 10), 1e-5);
  EXPECT_LT(largest_difference(dense, refined, 10, kSteps), 3e-3);
  EXPECT_LT(dense.back()[0], dense.front()[0] - 0.3);  // it did learn in between
}

TEST(Trainer, DrawsRowsForEachMemberWhenAsked) {
  const TempDir folder;
  const TrainOutcome shared = run(tiny_experiment(), folder / "shared");
  const TrainOutcome own = run(tiny_experiment({"batch.order=per_member"}), folder / "own");
  EXPECT_NE(shared.parameter_hash, own.parameter_hash);
}

TEST(Trainer, TrainsTileGraphsWithSeveralSlatesInAUnit) {
  const TempDir folder;
  const Experiment experiment =
      tiny_experiment({"data.collection=tile:xla", "model.preset=latenciaga_tile", "batch.slates=6",
                       "batch.unit_slates=4", "ensemble.folds=none"});
  const TrainOutcome outcome = run(experiment, folder / "tile");
  ASSERT_TRUE(outcome.evaluation.has_value());
  EXPECT_TRUE(std::isfinite(outcome.evaluation->ensemble_mean()));
}

// The same slates: only the order of the sums differs, so that the two runs stay close.
TEST(Trainer, MergesTheSlatesOfAGraph) {
  const TempDir folder;
  const auto with = [&](const char* unit) {
    return run(tiny_experiment({"batch.slates=12", "ensemble.folds=none", unit}), folder / unit);
  };
  const TrainOutcome apart = with("batch.unit=slates"), merged = with("batch.unit=graph");
  EXPECT_NE(apart.parameter_hash, merged.parameter_hash);
  EXPECT_NEAR(apart.evaluation->ensemble_mean(), merged.evaluation->ensemble_mean(), 0.02);
}

TEST(Trainer, MemoryKeysChangeNoBit) {
  const TempDir folder;
  const std::uint64_t plain = run(tiny_experiment(), folder / "plain").parameter_hash;
  EXPECT_EQ(run(tiny_experiment({"batch.member_chunk=1"}), folder / "members").parameter_hash,
            plain);
  EXPECT_EQ(run(tiny_experiment({"train.recompute=true"}), folder / "again").parameter_hash, plain);
  EXPECT_EQ(run(tiny_experiment({"train.cuda_graphs=true"}), folder / "graphs").parameter_hash,
            plain);
}

// Exact but for the order of the sums.
TEST(Trainer, ComputesSlatesInChunks) {
  const TempDir folder;
  const std::vector<std::string> base{"batch.configs=8", "ensemble.folds=none"};
  std::vector<std::string> cut = base;
  cut.push_back("batch.config_chunk=3");
  const TrainOutcome whole = run(tiny_experiment(base), folder / "whole");
  const TrainOutcome chunks = run(tiny_experiment(cut), folder / "chunks");
  EXPECT_NE(chunks.parameter_hash, whole.parameter_hash);
  EXPECT_NEAR(chunks.evaluation->ensemble_mean(), whole.evaluation->ensemble_mean(), 0.02);
}

TEST(Trainer, TheLastEvaluationTakesAllRowsASampleOrNone) {
  const TempDir folder;
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
TEST(Trainer, TheLastEvaluationMayChangeOnResume) {
  const TempDir folder;
  run(tiny_experiment({"train.last_evaluation=none"}), folder / "run");
  const TrainOutcome again =
      run(tiny_experiment({"train.last_evaluation=all"}), folder / "run", 1, true);
  EXPECT_TRUE(again.evaluation.has_value());
}

TEST(Trainer, LearnsTheTinyData) {
  const TempDir folder;
  const TrainOutcome before =
      run(tiny_experiment({"train.steps=0", "ensemble.folds=none"}), folder / "before");
  const TrainOutcome after =
      run(tiny_experiment({"train.steps=120", "ensemble.folds=none"}), folder / "after");
  EXPECT_GT(after.evaluation->ensemble_mean(), before.evaluation->ensemble_mean() + 0.1);
}

TEST(Trainer, LeavesOutAMemberWhoseLossIsNotFinite) {
  const TempDir folder;
  const Experiment experiment = tiny_experiment({"optimizer.lr=1e6", "optimizer.clip_norm=0"});
  const TrainOutcome outcome = run(experiment, folder / "run");
  EXPECT_EQ(outcome.steps, 6);  // it goes on, and says which members failed
  EXPECT_THROW(open_run(folder / "run"), ConfigError);
}

}  // namespace
}  // namespace tpudist
