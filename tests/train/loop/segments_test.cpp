// Graph Segment Training: against a plain reference on LibTorch's autograd in double, with the same
// segments, draws and table; and what a user can do with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "data/loading/metis_segments.hpp"
#include "dist/collectives/communicator.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/loop/graph_reference.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/loop/forecast.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCut = "data.segments={by: consecutive, nodes: 15}";

Experiment cut(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(),
                   {kCut, "loss.list_mle.clip_norm=.inf", "train.last_evaluation=none",
                    "batch.configs=8", "train.steps=10"});
  return tiny_experiment(std::move(overrides));
}

using Segments = TrainTest;

TEST_F(Segments, TrainAsAReferenceDoes) {
  constexpr int kSteps = 12;
  std::vector<std::string> settings = GraphReference::training();
  settings.push_back(std::string("model={") + GraphReference::kEncoderAndBlocks +
                     ", readout: {pool: sum, scale: 1}}");
  settings.insert(settings.end(), {"batch={configs: 8, stale_keep: 0.6}", "train.steps=12"});
  const Experiment experiment = cut(settings);
  const OneRankSetup setup(experiment);
  GraphReference reference(setup);
  std::map<std::tuple<int, std::int64_t, int>, double> stale;  // by graph, configuration, segment
  int used = 0;
  for (int step = 0; step < kSteps; ++step) {
    const BatchPlan plan = setup.planner.plan(step);
    at::Tensor loss = at::zeros({}, at::kDouble);
    std::map<std::tuple<int, std::int64_t, int>, double> fresh;
    for (std::size_t i = 0; i < plan.slates.size(); ++i) {
      const SlateId& id = plan.slates[i];
      if (plan.weights[0][i] == 0) continue;
      const Graph& graph = setup.data.graph(id.graph);
      const Slate slate = setup.data.slate(id.graph, setup.order.rows(id, drawn_by(experiment, 0)));
      const SegmentDraw draw = segment_draw(graph, graph_draw(experiment, step, std::span(&id, 1)));
      const auto segments = configurable_segments(graph);
      ASSERT_EQ(draw.taken.size(), segments.size());
      EXPECT_NEAR(draw.scale, 0.6 + 0.4 * static_cast<double>(segments.size()), 1e-12);
      const at::Tensor rows = reference.rows(segments[draw.own], slate);
      const at::Tensor own =
          (rows.matmul(reference["head.weight"]) + reference["head.bias"]).sum({1, 2});
      at::Tensor others = at::zeros_like(own);
      for (std::int64_t k = 0; k < own.size(0); ++k) {
        const std::int64_t config = slate.configs[k];
        for (int s = 0; s < static_cast<int>(segments.size()); ++s) {
          const auto known = stale.find({id.graph, config, s});
          if (!draw.taken[s] || known == stale.end()) continue;
          others[k] += known->second;
          ++used;
        }
        fresh[{id.graph, config, draw.own}] = own[k].item<double>();
      }
      loss = loss +
             plan.weights[0][i] * GraphReference::loss(draw.scale * own + others, slate.targets);
    }
    reference.step(loss);
    for (const auto& [key, score] : fresh) stale[key] = score;
  }
  EXPECT_GT(used, 0);

  const TempDir folder;
  ASSERT_EQ(run(experiment, folder / "run").steps, kSteps);
  const Checkpoint trained = test::checkpoint_at(folder / "run", experiment, kSteps);
  reference.expect_near(trained.parameters);
  std::size_t known = 0;
  for (const float score : trained.segment_scores) known += score != 0;
  EXPECT_EQ(known, stale.size());
}

TEST_F(Segments, TrainTheSameBitsForAnyThreadsUnitsAndAfterAStop) {
  const std::uint64_t whole = run(cut(), folder / "one").parameter_hash;
  EXPECT_EQ(run(cut(), folder / "three", 3).parameter_hash, whole);
  EXPECT_NE(run(cut({"batch.stale_keep=0"}), folder / "fresh").parameter_hash, whole);
  run(cut(), folder / "stopped", 1, false, stop_after(6));
  EXPECT_EQ(run(cut(), folder / "stopped", 2, true).parameter_hash, whole);
  // The table is part of it, and steps take scores of it.
  const auto table = [&](const char* name) {
    return test::checkpoint_at(folder / name, cut(), 10).segment_scores;
  };
  EXPECT_EQ(table("stopped"), table("one"));
  EXPECT_EQ(table("three"), table("one"));
  EXPECT_GT(std::ranges::count_if(table("one"), [](float score) { return score != 0; }), 0);
}

std::vector<float> table_of(const Experiment& experiment, const std::filesystem::path& run,
                            std::int64_t step, bool read = true) {
  ThreadPool pool(1);
  const Network network(experiment.network, experiment.data.collection.schema, -1, pool);
  return CheckpointFile(checkpoint_path(run / "checkpoints", step))
      .load(network.parameters(), read)
      .segment_scores;
}

// Chunks hold parts of a slate, which sees one segment in all of them; members may draw their own
// rows.
TEST_F(Segments, TrainInChunksAndWithRowsOfEachMember) {
  std::set<std::uint64_t> hashes;
  for (const char* key :
       {"batch.config_chunk=8", "batch.config_chunk=3", "batch.order=per_member"}) {
    SCOPED_TRACE(key);
    const Experiment experiment = cut({key});
    const auto at = [&](const char* name) { return folder / (std::string(key) + name); };
    const std::uint64_t whole = run(experiment, at("one")).parameter_hash;
    EXPECT_TRUE(hashes.insert(whole).second);
    run(experiment, at("stopped"), 2, false, stop_after(4));
    EXPECT_EQ(run(experiment, at("stopped"), 1, true).parameter_hash, whole);
    EXPECT_EQ(table_of(experiment, at("stopped"), 10), table_of(experiment, at("one"), 10));
  }
  // Chunks give the same scores but for rounding.
  const std::vector<float> whole = table_of(cut(), folder / "batch.config_chunk=8one", 10),
                           chunks = table_of(cut(), folder / "batch.config_chunk=3one", 10);
  ASSERT_EQ(whole.size(), chunks.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(whole[i], chunks[i], 1e-3 * std::abs(whole[i]) + 1e-6) << i;
}

// By METIS segments are no ranges of nodes.
TEST_F(Segments, ByMetisTrainTheSameBits) {
  if (!has_metis()) GTEST_SKIP() << "built without METIS";
  const TempDir folder;
  const Experiment experiment = cut({"data.segments={by: metis, nodes: 15}"});
  const std::uint64_t whole = run(experiment, folder / "one").parameter_hash;
  EXPECT_NE(run(cut(), folder / "ranges").parameter_hash, whole);
  run(experiment, folder / "stopped", 3, false, stop_after(6));
  EXPECT_EQ(run(experiment, folder / "stopped", 2, true).parameter_hash, whole);
}

// Segments of another METIS than then: the same settings and data, and another hash.
TEST_F(Segments, OfAnotherTrainingAreRefused) {
  const Experiment experiment = cut();
  run(experiment, folder / "run");
  test::change_checkpoint(checkpoint_path(folder / "run/checkpoints", 10), experiment,
                          [](Checkpoint& checkpoint, const auto&) {
                            ASSERT_TRUE(checkpoint.segment_hash);
                            ++*checkpoint.segment_hash;
                            // Their number may be another one, too.
                            checkpoint.segment_scores.clear();
                          });
  const std::string message =
      message_of<ConfigError>([&] { run(experiment, folder / "run", 1, true); });
  EXPECT_THAT(message, HasSubstr("step-000000010.h5: was trained on other segments"));
  EXPECT_THAT(message, HasSubstr("data.segments.by=consecutive"));
}

// What a member computed in a step that it did not take is forgotten.
TEST_F(Segments, AreNotKnownOfSkippedSteps) {
  const auto known = [&](const char* name, const char* key) {
    const Experiment experiment = cut({key, "train.on_bad_loss=skip", "train.steps=2"});
    run(experiment, folder / name);
    return std::ranges::count_if(table_of(experiment, folder / name, 2),
                                 [](float score) { return score != 0; });
  };
  EXPECT_GT(known("taken", "train.bad_loss_above=1e9"), 0);
  EXPECT_EQ(known("skipped", "train.bad_loss_above=1e-9"), 0);
}

// The table has the rows that are trained on, and no others.
TEST_F(Segments, OfRowsThatAreTrainedOn) {
  for (const char* key : {"data.max_configs=8", "data.duplicates=min", "data.duplicates=keep"}) {
    SCOPED_TRACE(key);
    const Experiment experiment = cut({key});
    const OneRankSetup setup(experiment);
    std::size_t scores = 0;
    for (const auto& [rows, segments] : cut_graphs(setup.data))
      scores += static_cast<std::size_t>(rows * segments);
    scores *= static_cast<std::size_t>(experiment.ensemble.members);
    run(experiment, folder / key);
    EXPECT_EQ(table_of(experiment, folder / key, 10).size(), scores);
    EXPECT_TRUE(table_of(experiment, folder / key, 10, false).empty());
    const auto bytes = [](const TrainingState& state) { return state.checkpoint_bytes(); };
    EXPECT_EQ(bytes(TrainingState(setup)) - bytes({experiment, setup.network}),
              static_cast<double>(4 * scores));
  }
}

// Costs and memory are those of what a step sees.
TEST_F(Segments, AreEstimatedByTheirSizes) {
  Graph graph;
  graph.name = "three";
  graph.nodes = 10;
  graph.segment = {0, 0, 1, 1, 1, 1, 1, 2, 2, 2};
  graph.config_nodes = {0, 4, 8};
  EXPECT_EQ(largest_segment(graph), 5);
  std::vector<int> order;
  for (int i = 0; i < 4; ++i)
    order.push_back(segment_draw(graph, {.one_segment = true, .segment = i}).own);
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 0, 1));

  const Experiment experiment = cut({"data.segments={by: consecutive, nodes: 7}"});
  ThreadPool pool(1, use_one_thread_per_worker);
  const auto world = make_self_communicator();
  const TrainingSetup setup(experiment, experiment.training_data(), pool, -1, 1, *world);
  const std::vector<SlateCost> costs =
      estimate_slate_costs(experiment, setup.data, setup.units, setup.order, pool, *world);
  for (int g = 0; g < setup.data.size(); ++g) {
    const auto segments = static_cast<int>(cut_graphs(setup.data)[g].second);
    const std::vector<Slate> slates{setup.data.slate(g, setup.order.rows({.graph = g}))};
    double sum = 0;
    for (int i = 0; i < segments; ++i)
      sum += setup.units.estimate(slates, {.one_segment = true, .segment = i}).step_work();
    EXPECT_DOUBLE_EQ(costs[g].first, sum / segments);
    EXPECT_EQ(costs[g].further, costs[g].first);
  }
  std::int64_t most = 0;
  for (int g = 0; g < setup.data.size(); ++g)
    most = std::max(most, largest_segment(setup.data.graph(g)));
  const Unit unit = setup.units.build(largest_unit(setup), largest_draw(experiment));
  EXPECT_EQ(setup.units.compare(unit.slates, largest_draw(experiment)).dense_rows,
            most * experiment.batch.configs);
}

// Graphs that are one segment are trained as without.
TEST_F(Segments, ChangeNothingOfSmallGraphs) {
  const auto hash = [&](const char* name, const char* setting) {
    return run(tiny_experiment({setting, "loss.list_mle.clip_norm=.inf",
                                "train.last_evaluation=none", "plan=dense"}),
               folder / name)
        .parameter_hash;
  };
  EXPECT_EQ(hash("cut", "data.segments={by: consecutive, nodes: 100000}"),
            hash("whole", "data.segments={by: none}"));
}

// Without edges between them, segments add up to the graph that is scored.
TEST_F(Segments, AddUpToTheGraph) {
  const Experiment experiment = cut({"ensemble.folds=none"});
  const OneRankSetup setup(experiment);
  AlignedFloats flat(static_cast<std::size_t>(setup.network.parameters().length()));
  setup.network.initialise(flat, 1);
  const SlateRows rows{0, {0, 1, 2, 3}};
  const auto difference = [&](const UnitScores& scores) {
    return scores.delta[1] - scores.delta[0];
  };
  const auto segments = configurable_segments(setup.data.graph(0)).size();
  ASSERT_GT(segments, 1u);
  std::map<int, double> parts;
  GraphDraw draw{.one_segment = true};
  for (; parts.size() < segments && draw.key < 200; ++draw.key) {
    const Unit unit = setup.units.build(std::span(&rows, 1), draw);
    parts[unit.segments[0].own] = difference(setup.network.scores(flat, 0, 1, unit.input));
  }
  ASSERT_EQ(parts.size(), segments);
  double sum = 0;
  for (const auto& [segment, part] : parts) sum += part;
  const double whole =
      difference(setup.network.scores(flat, 0, 1, setup.units.build(std::span(&rows, 1)).input));
  EXPECT_NE(whole, 0);
  EXPECT_NEAR(sum, whole, 1e-5 * std::abs(whole) + 1e-9);
}

TEST_F(Segments, AreToldBeforeATraining) {
  OneRank alone;
  const std::string text = plan_work(cut(), {1}, alone.context).text;
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "segments +[0-9]+ with configurable nodes, [0-9.]+ KiB of scores on each "
                        "rank and in each checkpoint; [0-9.]+ [KM]iB on the first"));
  EXPECT_THAT(text, ::testing::ContainsRegex("drawn +[0-9]+ nodes, 0 % of edges"));
}

TEST_F(Segments, NameMistakes) {
  const auto mistake = [](std::vector<std::string> overrides) {
    overrides.push_back("loss.list_mle.clip_norm=.inf");
    return message_of<Error>([&] { tiny_experiment(std::move(overrides)); });
  };
  EXPECT_THAT(mistake({"data.segments={nodes: 5}"}), HasSubstr("data.segments.by"));
  EXPECT_THAT(mistake({"data.segments={by: random}"}), HasSubstr("consecutive"));
  EXPECT_THAT(mistake({"data.segments={by: consecutive, nodes: 0}"}), HasSubstr("nodes"));
  if (has_metis())
    EXPECT_THAT(mistake({"data.segments={by: metis, nodes: 9}"}), HasSubstr("at least 10"));
  EXPECT_THAT(mistake({kCut, "model.readout.pool=mean"}), HasSubstr("sum over nodes"));
  EXPECT_THAT(mistake({kCut, "loss={mape: {}}"}), HasSubstr("differences"));
  EXPECT_THAT(mistake({kCut, "data.reduce={max_nodes: 5}"}), HasSubstr("max_nodes"));
  EXPECT_THAT(mistake({"batch.stale_keep=1.5"}), HasSubstr("stale_keep"));
  EXPECT_THAT(mistake({"batch.stale_keep=0.25"}), HasSubstr("data.segments.by"));
  EXPECT_NO_THROW(tiny_experiment({"batch.stale_keep=0.25", "data.segments={by: none}"}));
}

}  // namespace
}  // namespace tpudist::test
