#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/module_search.hpp"

namespace tpudist::test {
namespace {

// A search of a graph of the tiny data by untrained members.
struct SearchTest : TrainTest {
  ModuleSearch search(const std::vector<std::string>& overrides,
                      const std::function<MeasuredPoints(const SearchedModule&)>& measured = {}) {
    std::vector<std::string> all = overrides;
    all.insert(all.end(), {"train.steps=1", "train.last_evaluation=none"});
    run(tiny_experiment(all), folder / "run");
    std::vector<TrainedRun> runs;
    runs.push_back(open_run(folder / "run"));
    const auto split = tiny_shards().parent_path() / "npz/layout/xla/random/valid";
    const Module module = read_module(*std::filesystem::directory_iterator(split),
                                      runs[0].experiment.data.collection);
    OneRank alone;
    return search_module(module, runs, {}, {.evaluations = 400, .starts = 2, .propose = 4}, false,
                         alone.context, measured);
  }
};

TEST_F(SearchTest, OneMemberKnowsNothing) {
  const ModuleSearch found = search({"ensemble.members=1"});
  EXPECT_TRUE(std::isnan(found.known.interval.value));
  EXPECT_FALSE(found.known.is_better());
}

TEST_F(SearchTest, EachHalfOfTheMembersJudgesTheOther) {
  const ModuleSearch found = search({"ensemble.members=5"});
  EXPECT_EQ(found.known.interval.degrees, 4);  // five members
  EXPECT_TRUE(std::isfinite(found.known.interval.value));
  EXPECT_TRUE(found.correction.times.empty());
}

// Times depend on one group, of which the members know nothing.
TEST_F(SearchTest, MeasurementsCorrectTheScore) {
  std::size_t group = 0;
  MeasuredPoints known;
  const ModuleSearch found = search({"ensemble.members=2"}, [&](const SearchedModule& searched) {
    known.points = reference_points(searched.space(), 60, 3);
    group = searched.space().groups.size() - 1;
    for (std::size_t k = 0; k < known.points.size(); ++k)
      known.measurements.push_back({k, known.points[k][group] == 1 ? 5.0 : 10.0});
    return known;
  });
  EXPECT_EQ(found.correction.measured, known.points.size());
  EXPECT_GT(found.correction.tau_after, 0.9);
  ASSERT_EQ(found.found.proposals.size(), 4u);
  for (const ConfigSpace::Point& proposal : found.found.proposals) {
    EXPECT_EQ(proposal[group], 1);
    EXPECT_EQ(std::ranges::count(known.points, proposal), 0);
  }
  EXPECT_NEAR(found.found.scores[0].estimate, std::log(5.0), 0.5);
}

}  // namespace
}  // namespace tpudist::test
