#include "train/scoring/scoring_blocks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/aligned.hpp"
#include "core/error.hpp"
#include "data/schema/feature_schema.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "train/scoring/evaluation.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

// Two members, as they begin, on the tiny data.
struct ScoredSlates {
  explicit ScoredSlates(int threads = 2) : pool(threads, use_one_thread_per_worker) {
    network.initialise(std::span(flat).first(flat.size() / 2), 1);
    network.initialise(std::span(flat).last(flat.size() / 2), 2);
  }

  std::vector<ScoresByMember> score(const ScoringSlates& slates) {
    NoProgress progress;
    const auto world = make_self_communicator();
    JobContext context{*world, pool, NodeTopology{}, progress};
    ScoringBlock block;
    block.slates = slates;
    block.plan_floats = 1;  // does not cut slates
    return score_graphs(network, flat, 2, data, {0, data.size()}, units, {block, 0}, context);
  }

  std::vector<DistinctRows> distinct() const {
    std::vector<DistinctRows> graphs;
    for (int g = 0; g < data.size(); ++g)
      graphs.push_back(distinct_rows(data, g, choose_rows(data, g, 0)));
    return graphs;
  }

  ThreadPool pool;
  const Experiment experiment = tiny_experiment();
  const Dataset data = Dataset::open(experiment.data.evaluation("train"), pool);
  const Network network{experiment.network, kLayoutSchema, -1, pool};
  const UnitBuilder units{data, network, experiment.plan};
  AlignedFloats flat = AlignedFloats(2 * network.parameters().length());
};

TEST(SlatePermutations, ArePermutationsOfTheDistinctRows) {
  const ScoredSlates scored;
  const std::vector<DistinctRows> graphs = scored.distinct();
  const SlatePermutations permutations(scored.data, graphs,
                                       {.configs = 5, .permutations = 3, .seed = 1});
  ASSERT_EQ(permutations.count(), 3);
  ASSERT_EQ(permutations.rows().size(), 3 * graphs.size());
  for (std::size_t place = 0; place < permutations.rows().size(); ++place) {
    const DistinctRows& graph = graphs[permutations.graph_of(place)];
    const DistinctRows& permuted = permutations.rows()[place];
    EXPECT_EQ(permuted.graph, graph.graph);
    for (std::size_t i = 0; i < permuted.rows.size(); ++i)
      EXPECT_EQ(permuted.rows[i],
                graph.rows[permutations.position(place, static_cast<std::int64_t>(i))]);
    EXPECT_TRUE(std::ranges::is_permutation(permuted.rows, graph.rows));
    EXPECT_NE(permuted.rows, graph.rows);
  }
  EXPECT_NE(permutations.rows()[0].rows, permutations.rows()[1].rows);
  const SlatePermutations same(scored.data, graphs, {.configs = 9, .permutations = 2, .seed = 1});
  EXPECT_EQ(same.rows()[1].rows, permutations.rows()[1].rows);
  const SlatePermutations other(scored.data, graphs, {.configs = 5, .permutations = 3, .seed = 2});
  EXPECT_NE(other.rows()[0].rows, permutations.rows()[0].rows);
}

TEST(SlatePermutations, AreCutIntoNearlyEqualSlates) {
  std::vector<DistinctRows> graphs(1);
  for (const std::int64_t rows : {2, 10, 11, 12, 100, 1001}) {
    graphs[0].rows.resize(rows);
    const std::vector<Block> blocks = cut_blocks(graphs, {{.block = 10, .even = true}}, 1, 1);
    EXPECT_EQ(std::ssize(blocks), (rows + 9) / 10);
    std::int64_t next = 0, least = rows, most = 0;
    for (const Block& block : blocks) {
      EXPECT_EQ(block.first, next);
      next += block.count;
      least = std::min(least, block.count);
      most = std::max(most, block.count);
    }
    EXPECT_EQ(next, rows);
    EXPECT_LE(most, 10);
    EXPECT_LE(most - least, 1);
  }
}

// This network scores each configuration by itself, and so the slates do not matter.
TEST(SlatePermutations, GiveANetworkThatDoesNotMixConfigurationsTheSameScores) {
  ScoredSlates scored;
  const auto whole = scored.score({});
  const auto slates = scored.score({.configs = 7, .permutations = 3, .seed = 5});
  ASSERT_EQ(slates.size(), whole.size());
  for (std::size_t g = 0; g < whole.size(); ++g) {
    EXPECT_EQ(slates[g].rows, whole[g].rows);
    for (std::size_t m = 0; m < 2; ++m) {
      ASSERT_EQ(slates[g].scores[m].size(), whole[g].scores[m].size());
      for (std::size_t k = 0; k < whole[g].scores[m].size(); ++k)
        EXPECT_NEAR(slates[g].scores[m][k], whole[g].scores[m][k],
                    1e-5 * std::abs(whole[g].scores[m][k]) + 1e-6);
    }
  }
}

TEST(SlatePermutations, GiveTheSameBitsForAnyNumberOfThreads) {
  ScoredSlates one(1), three(3);
  const ScoringSlates slates{.configs = 6, .permutations = 2, .seed = 1};
  const auto a = one.score(slates), b = three.score(slates);
  for (std::size_t g = 0; g < a.size(); ++g) EXPECT_EQ(a[g].scores, b[g].scores);
}

TEST(SlatePermutations, CostAsMuchAsTheirPermutations) {
  ScoredSlates scored;
  ScoringBlock block;
  block.slates = {.configs = 8, .permutations = 1, .seed = 1};
  const ScoringCost once = scoring_cost(scored.units, scored.data, 2, 0, block, scored.pool);
  block.slates.permutations = 4;
  const ScoringCost often = scoring_cost(scored.units, scored.data, 2, 0, block, scored.pool);
  EXPECT_DOUBLE_EQ(often.flop, 4 * once.flop);
}

TEST(SlatePermutations, AreRecordedWithTheScores) {
  ScoredSlates scored;
  NoProgress progress;
  const auto world = make_self_communicator();
  JobContext context{*world, scored.pool, NodeTopology{}, progress};
  const Experiment experiment = tiny_experiment(
      {"ensemble.members=2", "evaluate.slate={configs: 12, permutations: 2, seed: 7}"});
  ScoringSession session(scored.data, context);
  session.add(experiment, scored.network);
  const Evaluation evaluation = evaluate_members(session, scored.flat, {true, true}, 20, context);
  const nlohmann::json json = evaluation_json(evaluation);
  EXPECT_EQ(json["members"][1]["slate"],
            nlohmann::json({{"configs", 12}, {"permutations", 2}, {"seed", 7}}));
  EXPECT_THAT(evaluation_table(evaluation),
              HasSubstr("in slates of at most 12 configurations, mean of 2 permutations"));
}

TEST(EvaluateSlate, NamesMistakes) {
  const auto mistake = [](const char* override) -> std::string {
    return test::message_of<ConfigError>([&] { tiny_experiment({override}); });
  };
  EXPECT_EQ(mistake("evaluate.slate={configs: 0}"), "");
  EXPECT_THAT(mistake("evaluate.slate={configs: 1}"), HasSubstr("at least 2"));
  // An override turns off what a file asks for.
  EXPECT_EQ(mistake("evaluate.slate={configs: 0, permutations: 10, seed: 2}"), "");
  EXPECT_THAT(mistake("evaluate.slate={permutations: 4}"),
              HasSubstr("give evaluate.slate.configs"));
  EXPECT_THAT(mistake("evaluate.slate={configs: 8, permutations: 0}"), HasSubstr("permutations"));
  EXPECT_THAT(mistake("evaluate={slate: {configs: 8}, block: 100}"), HasSubstr("computed whole"));
}

}  // namespace
}  // namespace tpudist::test
