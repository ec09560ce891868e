// Drawn nodes that alone have a gradient (`data.reduce.drawn: trained`): against a plain reference on
// LibTorch's autograd in double, and what a user can do with them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/error.hpp"
#include "dist/collectives/communicator.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/loop/graph_reference.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTrained = "data.reduce={max_nodes: 15, drawn: trained}";

constexpr const char* kHead = ", readout: {pool: mean+sum, widths: [4], scale: 1}}";

Experiment experiment_of(std::vector<std::string> overrides = {}, const char* readout = kHead) {
  std::vector<std::string> settings = GraphReference::training();
  settings.push_back(std::string("model={") + GraphReference::kEncoderAndBlocks + readout);
  settings.insert(settings.end(), {kTrained, "batch={configs: 8}", "train.steps=12"});
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  return tiny_experiment(settings);
}

// The first pass is of the whole graph, without a gradient, the second of the drawn nodes and the
// edges between them; then a drawn node takes its rows of the second.
at::Tensor scores_of(const GraphReference& reference, const std::vector<std::int32_t>& drawn,
                     std::int64_t nodes, const Slate& slate, bool sum) {
  std::vector<std::int32_t> all(nodes);
  std::iota(all.begin(), all.end(), 0);
  const at::Tensor places = at::tensor(drawn).to(at::kLong);
  const at::Tensor rows =
      reference.rows(all, slate).detach().index_copy(1, places, reference.rows(drawn, slate));
  if (sum) return rows.sum(1).mm(reference["head.weight"]).squeeze(1);  // but for a constant
  const at::Tensor pooled = at::cat({rows.mean(1), rows.sum(1)}, 1);
  const at::Tensor hidden =
      at::relu(pooled.mm(reference["head.0.weight"]) + reference["head.0.bias"]);
  return (hidden.mm(reference["head.weight"]) + reference["head.bias"]).squeeze(1);
}

using TrainedNodes = TrainTest;

TEST_F(TrainedNodes, TrainAsAReferenceDoes) {
  constexpr int kSteps = 12;
  const std::pair<const char*, const char*> cases[] = {
      {"data.reduce.sample=window", kHead},
      {"data.reduce.sample=random", kHead},
      {"batch.config_chunk=3", ", readout: {pool: sum, scale: 1}}"}};
  for (const auto& [key, readout] : cases) {
    SCOPED_TRACE(key);
    const Experiment experiment = experiment_of({key}, readout);
    const OneRankSetup setup(experiment);
    GraphReference reference(setup);
    int cut = 0;
    for (int step = 0; step < kSteps; ++step) {
      const BatchPlan plan = setup.planner.plan(step);
      at::Tensor loss = at::zeros({}, at::kDouble);
      for (std::size_t i = 0; i < plan.slates.size(); ++i) {
        const SlateId& id = plan.slates[i];
        if (plan.weights[0][i] == 0) continue;
        const Graph& graph = setup.data.graph(id.graph);
        const Slate slate =
            setup.data.slate(id.graph, setup.order.rows(id, drawn_by(experiment, 0)));
        const GraphReduction& reduction = setup.data.options().reduction;
        std::vector<std::int32_t> drawn =
            drawn_part(graph, reduction, graph_draw(experiment, step, std::span(&id, 1))).nodes;
        if (reduction.draws(graph.nodes)) {
          ASSERT_EQ(std::ssize(drawn), graph.nodes + 15);
          drawn.erase(drawn.begin(), drawn.begin() + graph.nodes);
          ++cut;
        }
        loss = loss + plan.weights[0][i] *
                          GraphReference::loss(
                              scores_of(reference, drawn, graph.nodes, slate, readout != kHead),
                              slate.targets);
      }
      reference.step(loss);
    }
    EXPECT_GT(cut, 0);
    const TempDir folder;
    ASSERT_EQ(run(experiment, folder / "run").steps, kSteps);
    reference.expect_near(test::checkpoint_at(folder / "run", experiment, kSteps).parameters);
  }
}

TEST_F(TrainedNodes, TrainTheSameBitsForAnyThreadsAndAfterAStop) {
  const std::uint64_t whole = run(experiment_of(), folder / "one").parameter_hash;
  EXPECT_EQ(run(experiment_of(), folder / "three", 3).parameter_hash, whole);
  EXPECT_NE(run(experiment_of({"data.reduce.drawn=seen"}), folder / "seen").parameter_hash, whole);
  EXPECT_NE(run(experiment_of({"data.reduce.max_nodes=0"}), folder / "all").parameter_hash, whole);
  run(experiment_of(), folder / "stopped", 1, false, stop_after(6));
  EXPECT_EQ(run(experiment_of(), folder / "stopped", 2, true).parameter_hash, whole);
}

// What is scored is the whole graph, and so are graphs of at most so many nodes.
TEST_F(TrainedNodes, AreOfTrainingAndOfLargerGraphsAlone) {
  const Experiment large = experiment_of({"data.reduce.max_nodes=100000"});
  EXPECT_EQ(run(large, folder / "large").parameter_hash,  // by the same plans, refined ones
            run(experiment_of({"data.reduce.max_nodes=0"}), folder / "all").parameter_hash);
  ThreadPool pool(1, use_one_thread_per_worker);
  const Dataset valid = Dataset::open(experiment_of().data.evaluation("valid"), pool);
  EXPECT_TRUE(keeps_whole(valid.graph(0), valid.options().reduction, {}));
  EXPECT_EQ(valid.seen_nodes(0), valid.graph(0).nodes);
}

TEST_F(TrainedNodes, NameMistakes) {
  const auto mistake = [](std::vector<std::string> overrides) {
    return message_of<Error>([&] { experiment_of(std::move(overrides)); });
  };
  EXPECT_THAT(message_of<Error>([] { tiny_experiment({"data.reduce={drawn: trained}"}); }),
              HasSubstr("data.reduce.max_nodes"));
  EXPECT_THAT(mistake({"model.blocks=[{layer: sage, width: 5}, {layer: virtual_node}]"}),
              HasSubstr("mix neighbours alone"));
  EXPECT_THAT(mistake({"plan=refined"}), HasSubstr("dense plans"));
}

}  // namespace
}  // namespace tpudist::test
