// Every layer trains the same bits on one rank and on several, and where layers run again in the
// backward pass.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/error.hpp"
#include "data/loading/metis_segments.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "tests/models/layers/layer_spellings.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/module_ranking.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using test::LayerSpelling;
using ::testing::AllOf;
using ::testing::HasSubstr;

Experiment experiment_around(const LayerSpelling& spelling, bool recompute) {
  return tiny_experiment(
      {"model={encoder: {opcode_width: 2, node_width: 3, width: 6, activation: gelu}, blocks: "
       "[{layer: sage, width: 6, activation: silu}, {layer: dropout, rate: 0.2}, " +
           spelling.yaml + ", {layer: sage, width: 5}], readout: {pool: mean, scale: 0.1}}",
       std::string("train={steps: 3, last_evaluation: none, recompute: ") +
           (recompute ? "true}" : "false}"),
       "ensemble={members: 2, vary: [init]}", "batch={slates: 3, configs: 4, edge_dropout: 0.2}",
       "evaluate.slate={configs: 4}"});
}

TEST(LayerRanks, TrainTheSameParametersWhateverTheirNumber) {
  int argc = 0;
  char** argv = nullptr;
  const MpiSession session(&argc, &argv);
  const auto world = session.world();
  const TempDir own;
  const std::filesystem::path shared = path_of_first(*world, own.path());
  ThreadPool pool(1, use_one_thread_per_worker);
  NoProgress progress;
  JobContext context{*world, pool, NodeTopology{}, progress};
  for (const LayerSpelling& spelling : test::layer_spellings()) {
    SCOPED_TRACE(spelling.name);
    const TrainOutcome together = train(experiment_around(spelling, false), shared / spelling.name,
                                        false, context, [] { return false; });
    EXPECT_EQ(together.steps, 3);
    EXPECT_TRUE(together.failed.empty());
    // Every rank by itself, with another number of threads.
    const TrainOutcome alone =
        run(experiment_around(spelling, true), own / ("alone-" + spelling.name), 2);
    EXPECT_EQ(alone.parameter_hash, together.parameter_hash);
  }
  // Drawn parts of graphs; segments, whose table all ranks share.
  for (const char* part :
       {"data.reduce={max_nodes: 15, sample: random}", "data.segments={by: consecutive, nodes: 15}",
        "data.segments={by: metis, nodes: 15}", "data.reduce={max_nodes: 15, drawn: trained}"}) {
    SCOPED_TRACE(part);
    if (std::string(part).find("metis") != std::string::npos && !has_metis()) continue;
    const Experiment experiment =
        tiny_experiment({part, "loss.list_mle.clip_norm=.inf", "train.last_evaluation=none",
                         "batch.configs=8", "train.steps=10"});
    const std::string name = std::to_string(std::hash<std::string>()(part));
    const TrainOutcome together =
        train(experiment, shared / name, false, context, [] { return false; });
    EXPECT_EQ(run(experiment, own / ("alone-" + name), 2).parameter_hash, together.parameter_hash);
  }
  // Segments differ as those of two versions of METIS would.
  const Experiment other = tiny_experiment(
      {fmt::format("data.segments={{by: consecutive, nodes: {}}}", 15 + 10 * world->rank()),
       "loss.list_mle.clip_norm=.inf", "train.last_evaluation=none", "train.steps=1"});
  run(other, own / "cut");
  const std::vector<TrainedRun> runs{open_run(own / "cut")};
  const auto valid = tiny_shards().parent_path() / "npz/layout/xla/random/valid";
  const Module module = read_module(std::filesystem::directory_iterator(valid)->path(),
                                    other.data.collection, other.data.reduction);
  for (const std::string& refusal :
       {message_of<ConfigError>(
            [&] { TrainingSetup(other, other.training_data(), pool, -1, world->size(), *world); }),
        message_of<ConfigError>([&] { rank_module(module, runs, {}, context); })}) {
    if (world->size() == 1)
      EXPECT_EQ(refusal, "");
    else
      EXPECT_THAT(refusal, AllOf(HasSubstr("segments of graphs: "), HasSubstr("the same METIS")));
  }
  world->barrier();  // the folder of rank 0 stays until all are done
}

}  // namespace
}  // namespace tpudist::test
