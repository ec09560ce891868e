#include "data/shards/shard_statistics.hpp"

#include <gtest/gtest.h>

#include "data/convert/converter.hpp"
#include "data/schema/tpugraphs.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

TEST(RunTimeStatistics, CountsRepeatsAndTheirSpread) {
  RunTimes times;
  times.runtime = {100, 300, 101, 400, 500, 102, 303, 404};
  times.group = {0, 1, 0, 2, 3, 0, 1, 2};
  const RunTimeStatistics s = run_time_statistics(times);
  EXPECT_EQ(s.min, 100);
  EXPECT_EQ(s.max, 500);
  EXPECT_EQ(s.distinct_configs, 4);
  EXPECT_EQ(s.repeated_configs, 3);
  EXPECT_EQ(s.repeated_rows, 7);
  EXPECT_EQ(s.most_repeats, 3);
  // numpy.percentile([0.02, 0.01, 0.01], [25, 50, 75])
  ASSERT_TRUE(s.spread.has_value());
  EXPECT_NEAR((*s.spread)[0], 0.01, 1e-12);
  EXPECT_NEAR((*s.spread)[1], 0.01, 1e-12);
  EXPECT_NEAR((*s.spread)[2], 0.015, 1e-12);
}

TEST(RunTimeStatistics, TileIsComparedByNormalizedRunTime) {
  RunTimes times;
  times.runtime = {100, 300};
  times.normalizer = {50, 100};
  times.group = {0, 0};
  EXPECT_NEAR(run_time_statistics(times).spread->at(1), 0.5, 1e-12);
}

TEST(RunTimeStatistics, TestSplitsHaveNoSpread) {
  RunTimes times;
  times.runtime = {0, 0};
  times.group = {0, 0};
  EXPECT_EQ(run_time_statistics(times).spread, std::nullopt);
  EXPECT_EQ(run_time_statistics(times).repeated_configs, 1);
  EXPECT_EQ(run_time_statistics({}).distinct_configs, 0);
}

TEST(CollectionStatistics, TellsHowGraphsAreStored) {
  const test::TempDir folder;
  test::NpzFixture::layout().write(folder / "npz/layout/nlp/default/valid/x.npz");
  NoProgress progress;
  convert({.npz_root = folder / "npz", .shard_root = folder / "shards"}, progress);
  const auto graphs = collection_statistics(folder / "shards", {"layout:nlp:default"});
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(graphs[0].entry.split, "valid");
  EXPECT_EQ(graphs[0].entry.states, 8);
  EXPECT_EQ(graphs[0].entry.max_states_per_node, 4);
  EXPECT_EQ(graphs[0].entry.float_bytes, 6u * 2 * kLayoutConfigFeatures * 4);
  EXPECT_EQ(graphs[0].entry.memory_bytes, 6u * 2 + 8u * kLayoutConfigFeatures * 4);
  EXPECT_EQ(graphs[0].times.distinct_configs, 4);
  EXPECT_EQ(graphs[0].entry.distinct_configs, 4);
}

}  // namespace
}  // namespace tpudist
