#include "results/scores/score_caveats.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "results/scores/judgement.hpp"
#include "statistics/ranking/metrics.hpp"
#include "tests/support/noisy_graph.hpp"

namespace tpudist {
namespace {

using test::NoisyGraph;
using ::testing::HasSubstr;

// Two graphs of these limits.
std::string text_of(const ScoreCaveats& limits) {
  std::vector<GraphEvaluation> graphs(2);
  graphs[0].name = "net";
  graphs[1].name = "other";
  for (GraphEvaluation& graph : graphs) graph.limits = limits;
  return limits_text(graphs, "kendall_tau");
}

PredictionRows predictions_of(const NoisyGraph& graph) {
  PredictionRows predictions;
  predictions.runtime.assign(graph.times.begin(), graph.times.end());
  predictions.group = graph.config;
  return predictions;
}

TEST(ScoreCaveats, AreThoseOfTheRowsAsRanked) {
  const NoisyGraph graph(NoisyGraph::smooth, 300, 0.004, 1);
  const ScoreCaveats limits = score_limits("layout:xla:random", graph.truth, predictions_of(graph));
  EXPECT_EQ(*limits.ceiling.value, *noise_ceiling(graph.times, graph.config).value);
  EXPECT_EQ(limits.tied_share, 0);
  EXPECT_EQ(limits.sampling_deviation,
            tau_sampling_deviation(graph.truth, graph.times, graph.config));
  const nlohmann::json json = limits_json(limits);
  EXPECT_EQ(json.at("ceiling"), *limits.ceiling.value);
  EXPECT_EQ(json.at("ceiling_interval").at(0), limits.ceiling.low);
  EXPECT_TRUE(json.at("ceiling_reason").is_null());
}

TEST(ScoreCaveats, SayWhereNoiseIsAssumedNormal) {
  const NoisyGraph few(NoisyGraph::smooth, 300, 0.004, 1, true);
  const ScoreCaveats limits = score_limits("layout:xla:random", few.truth, predictions_of(few));
  EXPECT_THAT(text_of(limits),
              HasSubstr("ceiling of net and 1 more: noise assumed normal, too few configurations "
                        "have six measurements\n"));
  EXPECT_EQ(limits_json(limits).at("ceiling_normal_assumed"), true);
}

TEST(ScoreCaveats, SayWhyThereIsNoCeiling) {
  PredictionRows predictions;
  predictions.runtime = {10, 20, 30};
  const std::vector<double> ranking = {1, 1, 2};
  const ScoreCaveats unknown = score_limits("layout:xla:random", ranking, predictions);
  EXPECT_THAT(unknown.ceiling.reason, HasSubstr("do not say which configurations are equal"));
  EXPECT_DOUBLE_EQ(unknown.tied_share, 1.0 / 3);
  predictions.group = {0, 1, 2};
  EXPECT_THAT(score_limits("layout:xla:random", ranking, predictions).ceiling.reason,
              HasSubstr("30 are needed"));
  predictions.normalizer = {1, 1, 1};
  EXPECT_EQ(score_limits("tile:xla", ranking, predictions).ceiling.reason, kNoTileCeiling);
  EXPECT_TRUE(std::isnan(score_limits("tile:xla", ranking, predictions).sampling_deviation));
  predictions.runtime = {0, 0, 0};
  EXPECT_EQ(score_limits("layout:xla:random", {}, predictions).ceiling.reason,
            "there are no run times");
  const std::string text = text_of(unknown);
  EXPECT_THAT(text, HasSubstr("no ceiling of net and 1 more: the predictions do not say"));
  EXPECT_THAT(text, HasSubstr("33.33 %"));
  EXPECT_TRUE(limits_json(unknown).at("ceiling").is_null());
}

}  // namespace
}  // namespace tpudist
