#include "train/scoring/scoring.hpp"

#include <gtest/gtest.h>

#include "core/aligned.hpp"
#include "dist/self_communicator.hpp"
#include "models/threads.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist {
namespace {

using testing::tiny_experiment;

TEST(Scoring, RangesHoldAllGraphsWithinTheBound) {
  ThreadPool pool(1);
  const Experiment experiment = tiny_experiment();
  const Dataset data = Dataset::open(experiment.data.training(), pool);
  ASSERT_GT(data.size(), 2);
  for (const std::int64_t most : {1, 300, 1 << 21}) {
    int next = 0;
    for (const GraphRange range : scoring_ranges(data, 3, 0, most)) {
      EXPECT_EQ(range.first, next);
      std::int64_t scores = 0;
      for (int g = range.first; g < range.first + range.count; ++g) scores += 3 * data.rows(g);
      EXPECT_TRUE(range.count == 1 || scores <= most);
      next += range.count;
    }
    EXPECT_EQ(next, data.size());
  }
  // Rows that are left out do not count.
  EXPECT_EQ(scoring_ranges(data, 3, 2, 6 * data.size()).size(), 1u);
}

// Graph by graph or all at once: the same scores.
TEST(Scoring, DoesNotDependOnTheRange) {
  NoProgress progress;
  const Experiment experiment = tiny_experiment();
  ThreadPool pool(2, use_one_thread_per_worker);
  const auto world = make_self_communicator();
  JobContext context{*world, pool, NodePlace{}, progress};
  const Dataset data = Dataset::open(experiment.data.training(), pool);
  const Network network(experiment.network, 18, -1, pool);
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
    EXPECT_EQ(one[0].rows, all[static_cast<std::size_t>(g)].rows);
    EXPECT_EQ(one[0].scores, all[static_cast<std::size_t>(g)].scores);
  }
}

}  // namespace
}  // namespace tpudist
