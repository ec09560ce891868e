#include "train/units/training_setup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dist/collectives/communicator.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist {
namespace {

struct Measured {
  explicit Measured(std::vector<std::string> overrides)
      : experiment(test::tiny_experiment(std::move(overrides))),
        setup(experiment, experiment.data.training(), pool, -1, 1, *world),
        members(member_statistics(setup)) {}

  const Experiment experiment;
  ThreadPool pool{1};
  const std::unique_ptr<Communicator> world = make_self_communicator();
  const TrainingSetup setup;
  const std::vector<FeatureStatistics> members;
};

// All values of a column of the nodes of all graphs.
std::vector<double> column(const Dataset& data, std::int64_t c) {
  std::vector<double> values;
  for (int g = 0; g < data.size(); ++g) {
    const auto& graph = data.graph(g);
    for (std::size_t at = c; at < graph.node_features.size(); at += kNodeFeatures)
      values.push_back(graph.node_features[at]);
  }
  return values;
}

TEST(FeatureStatistics, AreMinimumAndRangeForMinMaxAndMeanAndDeviationForStandardised) {
  const std::string whole = "ensemble={members: 1, folds: none, vary: [init]}";
  const Measured range({whole, "model.encoder={node_transform: min_max}"}),
      moments({whole, "model.encoder={node_transform: standardised}"});
  ASSERT_EQ(range.members.size(), 1u);
  bool constant = false, varies = false;
  for (std::int64_t c = 0; c < kNodeFeatures; ++c) {
    const std::vector<double> values = column(range.setup.data, c);
    const auto [least, most] = std::ranges::minmax(values);
    EXPECT_EQ(range.members[0].node_mean[c], least);
    EXPECT_EQ(range.members[0].node_scale[c], most > least ? 1 / (most - least) : 0);
    const double count = static_cast<double>(values.size()),
                 mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    EXPECT_NEAR(moments.members[0].node_mean[c], mean, 1e-9 * (1 + std::abs(mean)));
    const double scale = most > least ? 1 / std::sqrt(squares / count) : 0;
    EXPECT_NEAR(moments.members[0].node_scale[c], scale, 1e-9 * scale);
    (most > least ? varies : constant) = true;
  }
  EXPECT_TRUE(constant && varies);
  // The features of configurations go by their own transform.
  EXPECT_EQ(range.members[0].config_mean, moments.members[0].config_mean);
}

// Of a graph with states of its own (layout) and of one without (tile).
TEST(FeatureStatistics, RangesOfConfigurationsAreThoseOfEveryRow) {
  const test::TempDir folder;
  const std::filesystem::path shards = test::make_tiny_shards(folder.path(), 2 * kStatisticsRows);
  for (const char* collection : {"layout:xla:random", "tile:xla"}) {
    const Measured measured({"data.shards=" + shards.string(),
                             "data.collection=" + std::string(collection),
                             "model={encoder: {config_transform: min_max}, blocks: [{width: 8}]}",
                             "optimizer.decay.output=0", "data.duplicates=keep",
                             "ensemble={members: 1, folds: none, vary: [init]}"});
    const std::size_t width = measured.members[0].config_mean.size();
    std::vector<float> least(width, 1e30f), most(width, -1e30f);
    for (int g = 0; g < measured.setup.data.size(); ++g) {
      std::vector<std::int64_t> rows(measured.setup.data.rows(g));
      std::iota(rows.begin(), rows.end(), 0);
      // A kernel has few tiles.
      ASSERT_GT(std::ssize(rows), collection[0] == 'l' ? kStatisticsRows : 32);
      const Slate slate = measured.setup.data.slate(g, rows);
      const std::span<const float> states =
          slate.local_states.empty()
              ? std::span<const float>(measured.setup.data.states(g).features)
              : slate.local_states;
      for (const std::int32_t state : slate.states) {
        for (std::size_t c = 0; c < width; ++c) {
          least[c] = std::min(least[c], states[state * width + c]);
          most[c] = std::max(most[c], states[state * width + c]);
        }
      }
    }
    for (std::size_t c = 0; c < width; ++c) {
      EXPECT_EQ(measured.members[0].config_mean[c], least[c]) << collection << ' ' << c;
      EXPECT_EQ(measured.members[0].config_scale[c],
                most[c] > least[c] ? 1 / (double{most[c]} - double{least[c]}) : 0);
    }
  }
}

TEST(FeatureStatistics, RangesOfConfigurationsAreThoseOfTheMembersOwnGraphs) {
  const Measured folds({"model.encoder={config_transform: min_max}", "ensemble.folds=2"});
  ASSERT_EQ(folds.members.size(), 3u);
  for (const FeatureStatistics& member : folds.members) {
    for (std::size_t c = 0; c < member.config_mean.size(); ++c) {
      EXPECT_GE(member.config_mean[c], -1);
      if (member.config_scale[c] > 0) {
        EXPECT_LE(1 / member.config_scale[c], 6);
      }
    }
  }
  // Members of one fold share them; held-out nodes are not measured.
  EXPECT_EQ(folds.members[0].node_mean, folds.members[2].node_mean);
  EXPECT_NE(folds.members[0].node_mean, folds.members[1].node_mean);
}

}  // namespace
}  // namespace tpudist
