#include "train/scoring/scoring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "core/aligned.hpp"
#include "data/schema/feature_schema.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/scoring/scoring_blocks.hpp"

namespace tpudist::test {
namespace {

TEST(Scoring, RangesHoldAllGraphsWithinTheBound) {
  ThreadPool pool(1);
  const Experiment experiment = tiny_experiment();
  const Dataset data = Dataset::open(experiment.data.training(), pool);
  ASSERT_GT(data.size(), 2);
  std::vector<std::int64_t> scores;
  for (int g = 0; g < data.size(); ++g) scores.push_back(3 * data.rows(g));
  for (const std::int64_t most : {1, 300, 1 << 21}) {
    int next = 0;
    for (const GraphRange range : scoring_ranges(scores, most)) {
      EXPECT_EQ(range.first, next);
      std::int64_t sum = 0;
      for (int g = range.first; g < range.first + range.count; ++g) sum += 3 * data.rows(g);
      EXPECT_TRUE(range.count == 1 || sum <= most);
      next += range.count;
    }
    EXPECT_EQ(next, data.size());
  }
}

// Graph by graph or all at once: the same scores.
TEST(Scoring, DoesNotDependOnTheRange) {
  NoProgress progress;
  const Experiment experiment = tiny_experiment();
  ThreadPool pool(2, use_one_thread_per_worker);
  const auto world = make_self_communicator();
  JobContext context{*world, pool, NodeTopology{}, progress};
  const Dataset data = Dataset::open(experiment.data.training(), pool);
  const Network network(experiment.network, kLayoutSchema, -1, pool);
  const UnitBuilder units(data, network, experiment.plan);
  AlignedFloats flat(2 * network.parameters().length());
  network.initialise(std::span(flat).first(flat.size() / 2), 1);
  network.initialise(std::span(flat).last(flat.size() / 2), 2);
  const auto score = [&](GraphRange range) {
    return score_graphs(network, flat, 2, data, range, units, {experiment.evaluate_block, 0},
                        context);
  };
  const auto all = score({0, data.size()});
  ASSERT_EQ(static_cast<int>(all.size()), data.size());
  for (int g = 0; g < data.size(); ++g) {
    const auto one = score({g, 1});
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(one[0].graph, g);
    EXPECT_EQ(one[0].rows, all[g].rows);
    EXPECT_EQ(one[0].scores, all[g].scores);
  }
}

// A network of two members on the tiny data.
struct Scored {
  explicit Scored(std::vector<std::string> overrides = {})
      : experiment(tiny_experiment(std::move(overrides))),
        data(Dataset::open(experiment.data.training(), pool)),
        network(experiment.network, kLayoutSchema, -1, pool),
        units(data, network, experiment.plan),
        flat(2 * network.parameters().length()) {
    network.initialise(std::span(flat).first(flat.size() / 2), 1);
    network.initialise(std::span(flat).last(flat.size() / 2), 2);
  }

  ThreadPool pool{2, use_one_thread_per_worker};
  const Experiment experiment;
  const Dataset data;
  const Network network;
  const UnitBuilder units;
  AlignedFloats flat;
};

TEST(Scoring, NoPlanOfABlockIsLargerThanAllowed) {
  for (const char* plan : {"plan=auto", "plan=dense"}) {
    const Scored scored({plan});
    int smaller = 0;
    for (const std::int64_t allowed : {60'000, 300'000, 1'500'000, 6'000'000}) {
      ScoringBlock block;
      block.plan_floats = allowed;
      for (int g = 0; g < scored.data.size(); ++g) {
        const DistinctRows graph = distinct_rows(scored.data, g, choose_rows(scored.data, g, 0));
        const auto scoring = estimate_scoring(scored.units, scored.data, graph, block);
        smaller += scoring.block < static_cast<std::int64_t>(graph.rows.size());
        std::int64_t next = 0;
        for (const Block& part : cut_blocks({graph}, {scoring}, 1, 1)) {
          for_fitting_units(
              scored.units, graph, part.first, part.count, block, 0,
              [&](std::int64_t first, std::int64_t count, const Unit& unit) {
                EXPECT_EQ(first, next);
                next += count;
                EXPECT_TRUE(count == 1 || scored.units.state_floats(*unit.input.plan) <=
                                              static_cast<double>(allowed));
              });
        }
        EXPECT_EQ(next, static_cast<std::int64_t>(graph.rows.size()));
      }
    }
    EXPECT_GT(smaller, 0);
  }
}

// The estimate seldom asks for a plan that is much smaller than allowed.
TEST(Scoring, BlocksUseTheMemoryTheyMayHave) {
  const Scored scored;
  ScoringBlock block;
  block.plan_floats = 1'500'000;
  for (int g = 0; g < scored.data.size(); ++g) {
    const DistinctRows graph = distinct_rows(scored.data, g, choose_rows(scored.data, g, 0));
    const auto scoring = estimate_scoring(scored.units, scored.data, graph, block);
    if (scoring.block == static_cast<std::int64_t>(graph.rows.size())) continue;
    const SlateRows rows{g, {graph.rows.begin(), graph.rows.begin() + scoring.block}};
    const Unit unit = scored.units.build(std::span(&rows, 1));
    EXPECT_GT(scored.units.state_floats(*unit.input.plan),
              static_cast<double>(block.plan_floats) / 3)
        << g;
  }
}

TEST(Scoring, ScoresDoNotDependOnTheBlock) {
  const Scored scored;
  OneRank alone(2);
  const auto score = [&](std::int64_t configs, std::int64_t plan_floats) {
    ScoringBlock block;
    block.configs = configs;
    block.plan_floats = plan_floats;
    return score_graphs(scored.network, scored.flat, 2, scored.data, {0, scored.data.size()},
                        scored.units, {block, 0}, alone.context);
  };
  const auto whole = score(1 << 20, 1);
  for (const auto& cut : {score(0, 300'000), score(0, 5'000'000), score(7, 1)}) {
    for (std::size_t g = 0; g < whole.size(); ++g) {
      for (std::size_t m = 0; m < 2; ++m) {
        ASSERT_EQ(cut[g].scores[m].size(), whole[g].scores[m].size());
        for (std::size_t k = 0; k < whole[g].scores[m].size(); ++k)
          EXPECT_NEAR(cut[g].scores[m][k], whole[g].scores[m][k],
                      1e-5 * std::abs(whole[g].scores[m][k]) + 1e-6);
      }
    }
  }
}

// Adds up what it is told.
class RecordedProgress : public NoProgress {
 public:
  void start(std::string_view, std::int64_t total, std::string_view) override {
    ++starts;
    total_ = total;
  }
  void advance(std::int64_t count, std::string_view) override {
    EXPECT_GT(count, 0);
    done += count;
    ++steps;
  }
  void finish() override { EXPECT_EQ(done, total_); }
  int starts = 0;
  std::atomic<std::int64_t> done = 0, steps = 0;

 private:
  std::int64_t total_ = 0;
};

TEST(Scoring, AnEvaluationIsOneProgressOverAllGraphs) {
  const Scored scored({"ensemble.members=2"});
  RecordedProgress progress;
  const auto world = make_self_communicator();
  ThreadPool pool(2, use_one_thread_per_worker);
  JobContext context{*world, pool, NodeTopology{}, progress};
  ScoringSession session(scored.data, context);
  session.add(scored.experiment, scored.network);
  evaluate_members(session, scored.flat, {true, true}, 20, context);
  EXPECT_EQ(progress.starts, 1);
  std::int64_t scores = 0;
  for (int g = 0; g < scored.data.size(); ++g) scores += 2 * scored_rows(scored.data, g, 20);
  EXPECT_EQ(progress.done, scores);
  EXPECT_GE(progress.steps, scored.data.size());
}

}  // namespace
}  // namespace tpudist::test
