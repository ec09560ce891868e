#include "train/scoring/module_search.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

class ModuleSearchTest : public TrainTest {
 protected:
  TrainedRun trained(const std::string& name, std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.end(), {"train.steps=3", "train.last_evaluation=none"});
    run(tiny_experiment(overrides), folder / name);
    return open_run(folder / name);
  }
  static std::filesystem::path npz(const std::string& collection = "layout/xla/random") {
    const auto split = tiny_shards().parent_path() / "npz" / collection / "valid";
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(split)) files.insert(entry.path());
    return *files.begin();
  }
  static Module module_for(const TrainedRun& run, const std::filesystem::path& file = npz()) {
    return read_module(file, run.experiment.data.collection, run.experiment.data.reduction);
  }
  static ModuleSearch search(const std::vector<TrainedRun>& runs, SearchOptions options = {},
                             bool free = false, int threads = 1) {
    OneRank alone(threads);
    const Module module = module_for(runs.front());
    return search_module(module, runs, {}, std::move(options), free, alone.context);
  }
  static std::string refusal(const std::vector<TrainedRun>& runs,
                             const std::filesystem::path& file) {
    OneRank alone;
    return message_of<Error>(
        [&] { search_module(module_for(runs.front(), file), runs, {}, {}, false, alone.context); });
  }
};

void expect_equal(const ModuleSearch& found, const ModuleSearch& expected) {
  EXPECT_EQ(found.found.proposals, expected.found.proposals);
  for (std::size_t k = 0; k < found.found.scores.size(); ++k)
    EXPECT_EQ(found.found.scores[k].estimate, expected.found.scores[k].estimate);
}

TEST_F(ModuleSearchTest, ListsTheDefaultAndTheProposals) {
  const std::vector<TrainedRun> runs{trained("run")};
  const ModuleSearch search = this->search(runs, {.evaluations = 400, .starts = 3, .propose = 4});
  ASSERT_EQ(search.found.proposals.size(), 4u);
  EXPECT_LE(search.found.evaluations, 400);
  ASSERT_EQ(search.listed.made->configs.size(), 5u);
  EXPECT_EQ(search.listed.made->configs[0], search.listed.made->space.standard());
  EXPECT_EQ(search.listed.standard, 0);
  EXPECT_EQ(search.listed.dataset.rows(0), 5);
  EXPECT_EQ(search.members.size(), 3u);
  EXPECT_EQ(search.configs, search.listed.made->space.size());
  ASSERT_EQ(search.changed.size(), 4u);
  for (const int groups : search.changed) EXPECT_GE(groups, 1);
  EXPECT_TRUE(search.broken.empty());
  EXPECT_TRUE(std::ranges::is_sorted(search.found.scores, {}, &PointScore::estimate));
  EXPECT_EQ(search.pessimism.graphs, 0);
}

TEST_F(ModuleSearchTest, IsTheSameOnAnyNumberOfThreadsAndAgain) {
  const std::vector<TrainedRun> runs{trained("two", {"ensemble.members=2"}),
                                     trained("one", {"ensemble.members=1", "seed.init=7"})};
  for (const bool free : {false, true}) {
    const SearchOptions options{.evaluations = 300, .starts = 3, .propose = 5};
    const ModuleSearch expected = search(runs, options, free);
    expect_equal(search(runs, options, free), expected);
    expect_equal(search(runs, options, free, 3), expected);
  }
}

// What is scored as a slate has the bits that ranking it as a module gives.
TEST_F(ModuleSearchTest, SlatesAreScoredLikeModules) {
  for (const std::string more :
       {"plan=auto", "plan=dense", "data.reduce={keep: config_neighbours}"}) {
    const std::vector<TrainedRun> runs{trained("run-" + more.substr(0, 9), {more})};
    OneRank alone(2);
    const Module module = module_for(runs[0]);
    const SearchedModule searched(module, runs, {}, false, 1, alone.context);
    const auto points = reference_points(searched.space(), 40, 5);
    const Module listed = searched.with_configs(points);
    ScoringSession session(listed.dataset, alone.context);
    const MemberWeights weights = add_runs(session, {&runs[0]});
    std::vector<std::vector<double>> expected;
    session.score(weights, 0, [&](std::vector<ScoresByMember> graphs) {
      expected = std::move(graphs.front().scores);
    });
    EXPECT_EQ(session.score_slate(weights, searched.space().slate(points)), expected) << more;
    std::vector<std::int64_t> rows(points.size());
    std::iota(rows.begin(), rows.end(), 0);
    EXPECT_EQ(session.score_slate(weights, listed.dataset.slate(0, rows)), expected) << more;
  }
}

TEST_F(ModuleSearchTest, PredictionsOfUnseenGraphsChooseThePessimism) {
  const std::vector<TrainedRun> runs{trained("run", {"predictions.rows=all"})};
  std::vector<RankingRun> ranking{{folder / "run", runs[0].parameter_hash, {0, 1, 2}}};
  const Pessimism chosen = pessimism_of(ranking);
  EXPECT_EQ(search(runs, {.evaluations = 20}).pessimism.graphs, chosen.graphs);
  // Predictions of other weights, and a damaged file, choose nothing.
  ++ranking[0].parameter_hash;
  EXPECT_EQ(pessimism_of(ranking).graphs, 0);
  --ranking[0].parameter_hash;
  std::ofstream(folder / "run/predictions.h5") << "no HDF5";
  EXPECT_EQ(pessimism_of(ranking).graphs, 0);
  EXPECT_EQ(pessimism_of(ranking).share, 0.5);
}

TEST_F(ModuleSearchTest, RefusesWhatItCannotSearch) {
  const std::vector<TrainedRun> tiles{
      trained("tile", {"data.collection=tile:xla", "model.preset=latenciaga_tile"})};
  EXPECT_THAT(refusal(tiles, npz("tile/xla")), HasSubstr("tile sizes need no search"));
  const std::vector<TrainedRun> mixing{
      trained("mixing", {"evaluate.slate={configs: 6}",
                         "model={encoder: {node_transform: standardised, width: 8}, blocks: "
                         "[{layer: sage, width: 8}, {layer: config_attention}], readout: {pool: "
                         "mean+max}}"})};
  EXPECT_THAT(refusal(mixing, npz()),
              HasSubstr("a layer across configurations scores a configuration only together"));
  NpzFixture one = NpzFixture::layout();
  for (std::size_t i = 0; i < one.features.size(); ++i)
    one.features[i] = one.features[i % (2 * kLayoutConfigFeatures)];
  one.write(folder / "one.npz");
  EXPECT_THAT(refusal({trained("run")}, folder / "one.npz"), HasSubstr("nothing to search"));
}

}  // namespace
}  // namespace tpudist::test
