// Scores with kept states have the bits of scores without, and of `rank`, for any limit of their
// memory, number of threads and number of ranks.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/random.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/models/layers/layer_spellings.hpp"
#include "tests/train/tiny_data.hpp"
#include "train/scoring/module_search.hpp"

namespace tpudist::test {
namespace {

using Point = ConfigSpace::Point;

TrainedRun untrained(std::vector<std::string> overrides, ThreadPool& pool) {
  overrides.insert(overrides.end(), {"ensemble={members: 2, vary: [init]}"});
  TrainedRun run;
  run.experiment = tiny_experiment(overrides);
  const Network network = make_network(run.experiment, -1, pool);
  const std::int64_t length = network.parameters().length();
  run.flat.resize(static_cast<std::size_t>(2 * length));
  network.initialise(std::span(run.flat).first(length), 1);
  network.initialise(std::span(run.flat).last(length), 2);
  return run;
}

// A module of the tiny data with a space, a run, and the session that scores them.
struct Searched {
  Searched(std::vector<std::string> overrides, JobContext& context)
      : run(untrained(std::move(overrides), context.pool)),
        module(
            read_module(first_module(), run.experiment.data.collection, scored_reduction({&run}))),
        space(config_space(listed_layouts(module))),
        session(module.dataset, context),
        weights(add_runs(session, {&run})) {}

  static std::filesystem::path first_module() {
    const auto folder = tiny_shards().parent_path() / "npz/layout/xla/random/valid";
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      files.insert(entry.path());
    return *files.begin();
  }

  // Slates of all choices of one group, one after the other, with some random configurations.
  std::vector<std::vector<Point>> walk(std::uint64_t seed, int steps) const {
    CounterRng rng(mix_key({seed}));
    std::vector<std::vector<Point>> slates;
    Point point = space.standard_point;
    for (int step = 0; step < steps; ++step) {
      auto& slate = slates.emplace_back();
      const std::size_t changed = rng.below(space.groups.size());
      for (std::size_t c = 0; c < space.groups[changed].choices.size(); ++c) {
        slate.push_back(point);
        slate.back()[changed] = static_cast<std::uint16_t>(c);
      }
      if (step % 8 == 7) {
        for (std::size_t g = 0; g < point.size(); ++g)
          point[g] = static_cast<std::uint16_t>(rng.below(space.groups[g].choices.size()));
        slate.push_back(point);
      } else {
        point = slate[rng.below(slate.size())];
      }
    }
    return slates;
  }

  // [M] The scores that `rank` gives to a list of all these configurations.
  std::vector<std::map<Point, double>> ranked(const std::vector<std::vector<Point>>& slates,
                                              JobContext& context) const {
    std::set<Point> all;
    for (const auto& slate : slates) all.insert(slate.begin(), slate.end());
    const std::vector<Point> points(all.begin(), all.end());
    const Dataset listed = Dataset::of_slate(module.dataset.options(), module.dataset.entry(0),
                                             module.dataset.graph(0), space.slate(points));
    ScoringSession own(listed, context);
    std::vector<std::map<Point, double>> scores(2);
    own.score(add_runs(own, {&run}), 0, [&](std::vector<ScoresByMember> graphs) {
      for (std::size_t m = 0; m < scores.size(); ++m)
        for (std::size_t k = 0; k < points.size(); ++k)
          scores[m][points[k]] = graphs.front().scores[m][k];
    });
    return scores;
  }

  void expect(const std::vector<std::map<Point, double>>& expected,
              const std::vector<Point>& slate) const {
    const auto scores = session.score_slate(weights, space.slate(slate));
    for (std::size_t m = 0; m < scores.size(); ++m)
      for (std::size_t k = 0; k < slate.size(); ++k)
        ASSERT_EQ(scores[m][k], expected[m].at(slate[k]));
  }

  const TrainedRun run;
  const Module module;
  const ConfigSpace space;
  ScoringSession session;
  const MemberWeights weights;
};

struct KeptStates : ::testing::Test {
  ThreadPool pool{2, use_one_thread_per_worker};
  const std::unique_ptr<Communicator> world = make_self_communicator();
  NoProgress progress;
  JobContext context{*world, pool, NodeTopology{}, progress};

  void expect_same_bits(const std::vector<std::string>& overrides, int steps) {
    Searched searched(overrides, context);
    ASSERT_GT(searched.space.groups.size(), 1u);
    const auto slates = searched.walk(1, steps);
    const auto expected = searched.ranked(slates, context);
    // None; forgotten now and then (by the smaller networks, by the larger ones); all.
    for (const std::uint64_t bytes : {0ull, 1ull << 20, 1ull << 22, 1ull << 30}) {
      SCOPED_TRACE(bytes);
      searched.session.keep_bytes(bytes);
      for (const auto& slate : slates) searched.expect(expected, slate);
    }
  }
};

TEST_F(KeptStates, GiveTheBitsOfRankForEachLayer) {
  int kept = 0;
  for (const LayerSpelling& spelling : layer_spellings()) {
    SCOPED_TRACE(spelling.name);
    const std::vector<std::string> model{
        "model={encoder: {opcode_width: 2, node_width: 3, width: 6, activation: gelu}, blocks: "
        "[{layer: sage, width: 6, activation: silu}, {layer: dropout, rate: 0.2}, " +
            spelling.yaml + ", {layer: sage, width: 5}], readout: {pool: mean+max, scale: 0.1}}",
        "evaluate.slate={configs: 64}"};
    const TrainedRun run = untrained(model, pool);
    if (make_network(run.experiment, -1, pool).kept_channels().empty()) continue;
    expect_same_bits(model, 16);
    ++kept;
  }
  EXPECT_GT(kept, 20);
}

TEST_F(KeptStates, GiveTheBitsOfRankForEachKindOfNetwork) {
  for (const char* model :
       {"model={preset: latenciaga_xla}",
        "model={preset: latenciaga_xla, blocks: [{layer: sage, width: 16, aggregation: max, "
        "residual: true, repeat: 3}]}",
        "model={preset: latenciaga_xla, blocks: [{layer: sage, width: 20, directions: "
        "[consumer_to_producer, producer_to_consumer]}]}",
        "model={encoder: {width: 8, join: late}, blocks: [{layer: sage, width: 8}, {layer: "
        "join_config}, {layer: gin, width: 8}], readout: {pool: sum, scale: 0.1}}",
        "model={encoder: {width: 8}, blocks: [{layer: gat, width: 8}, {layer: gcn, width: 8}], "
        "readout: {pool: config_mean+max, scale: 0.1, widths: [6]}}"}) {
    SCOPED_TRACE(model);
    expect_same_bits({model}, 100);
  }
}

TEST_F(KeptStates, GiveTheBitsOfRankInSlatesOfParts) {
  expect_same_bits({"model={preset: latenciaga_xla}", "evaluate.plan_floats=1"}, 40);
}

TEST_F(KeptStates, AreOfEachThread) {
  Searched searched({"model={preset: latenciaga_xla}"}, context);
  std::vector<std::vector<Point>> all;
  std::vector<std::vector<std::vector<Point>>> walks;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    walks.push_back(searched.walk(seed, 60));
    all.insert(all.end(), walks.back().begin(), walks.back().end());
  }
  const auto expected = searched.ranked(all, context);
  for (const std::uint64_t bytes : {1ull << 20, 1ull << 22, 1ull << 30}) {
    searched.session.keep_bytes(bytes);
    pool.parallel_for(std::ssize(walks), [&](std::int64_t i) {
      for (const auto& slate : walks[static_cast<std::size_t>(i)]) searched.expect(expected, slate);
    });
  }
}

TEST(KeptStatesOfRanks, FindTheSameConfigurations) {
  int argc = 0;
  char** argv = nullptr;
  const MpiSession session(&argc, &argv);
  const auto ranks = session.world();
  const auto alone = make_self_communicator();
  ThreadPool pool(2, use_one_thread_per_worker);
  NoProgress progress;
  const auto found = [&](Communicator& world, std::uint64_t bytes) {
    JobContext context{world, pool, NodeTopology{}, progress};
    Searched searched({"model={preset: latenciaga_xla}"}, context);
    searched.session.keep_bytes(bytes);
    const PointScorer score = [&](std::span<const Point> points) {
      const auto scores =
          searched.session.score_slate(searched.weights, searched.space.slate(points));
      std::vector<PointScore> result;
      for (std::size_t k = 0; k < points.size(); ++k)
        result.push_back({scores[0][k] + scores[1][k], 0});
      return result;
    };
    SearchOptions options;
    options.evaluations = 600;
    return find_configs(searched.space, score, options, context);
  };
  const SearchResult expected = found(*alone, 0);
  for (const std::uint64_t bytes : {0ull, 1ull << 22, 1ull << 30}) {
    const SearchResult own = found(*ranks, bytes);
    EXPECT_EQ(own.proposals, expected.proposals);
    ASSERT_EQ(own.scores.size(), expected.scores.size());
    for (std::size_t k = 0; k < own.scores.size(); ++k)
      EXPECT_EQ(own.scores[k].estimate, expected.scores[k].estimate);
  }
}

}  // namespace
}  // namespace tpudist::test
