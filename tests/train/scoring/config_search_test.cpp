#include "train/scoring/config_search.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/random.hpp"
#include "tests/dist/thread_ranks.hpp"
#include "tests/results/scores/system_case.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using Point = ConfigSpace::Point;

// Groups of one operation each with so many choices.
ConfigSpace space_of(std::size_t groups, std::size_t choices) {
  ConfigSpace space;
  for (std::size_t g = 0; g < groups; ++g) {
    ConfigSpace::Group& own = space.groups.emplace_back();
    own.nodes = {static_cast<std::int32_t>(g)};
    own.choices.resize(choices);
    space.standard_point.push_back(static_cast<std::uint16_t>(g % choices));
  }
  return space;
}

// A law with terms of single groups and of neighbours, which descents alone do not solve. Keeps the
// slates that were scored.
class Law {
 public:
  explicit Law(const ConfigSpace& space, double pairs = 1) : space_(space), pairs_(pairs) {}

  double operator()(const Point& point) const {
    double sum = 0;
    for (std::uint64_t g = 0; g < point.size(); ++g) {
      const std::uint64_t next = point[(g + 1) % point.size()];
      sum += CounterRng(mix_key({1, g, point[g]})).uniform();
      sum += pairs_ * CounterRng(mix_key({2, g, point[g], next})).uniform();
    }
    return sum;
  }
  PointScorer scorer() {
    return [this](std::span<const Point> points) {
      std::vector<PointScore> scores;
      for (const Point& point : points) scores.push_back({(*this)(point), 0.5});
      const std::lock_guard lock(mutex_);
      slates.emplace_back(points.begin(), points.end());
      return scores;
    };
  }
  std::multiset<Point> scored() const {
    std::multiset<Point> all;
    for (const auto& slate : slates) all.insert(slate.begin(), slate.end());
    return all;
  }
  // All configurations by score.
  std::vector<Point> order() const {
    std::vector<Point> all{{}};
    for (const ConfigSpace::Group& group : space_.groups) {
      std::vector<Point> longer;
      for (const Point& point : all) {
        for (std::uint16_t c = 0; c < group.choices.size(); ++c) {
          longer.push_back(point);
          longer.back().push_back(c);
        }
      }
      all = std::move(longer);
    }
    std::ranges::sort(all, {},
                      [&](const Point& point) { return std::pair((*this)(point), point); });
    return all;
  }

  std::vector<std::vector<Point>> slates;

 private:
  const ConfigSpace& space_;
  const double pairs_;
  std::mutex mutex_;
};

SearchResult find(Law& law, const ConfigSpace& space, const SearchOptions& options,
                  int threads = 1) {
  OneRank alone(threads);
  return find_configs(space, law.scorer(), options, alone.context);
}

void expect_equal(const SearchResult& found, const SearchResult& expected) {
  EXPECT_EQ(found.proposals, expected.proposals);
  EXPECT_EQ(found.evaluations, expected.evaluations);
  EXPECT_EQ(found.apart, expected.apart);
  ASSERT_EQ(found.scores.size(), expected.scores.size());
  for (std::size_t k = 0; k < found.scores.size(); ++k)
    EXPECT_EQ(found.scores[k].estimate, expected.scores[k].estimate);
}

// The first slates are the default, all that differ from it in one group, and the better choices
// of several groups together.
TEST(ConfigSearch, ScoresAllNeighboursAsOneSlate) {
  const ConfigSpace space = space_of(6, 4);
  Law law(space, 0);
  const SearchResult found = find(law, space, {.evaluations = 100, .starts = 1, .propose = 1});
  ASSERT_GE(law.slates.size(), 3u);
  EXPECT_THAT(law.slates[0], ElementsAre(space.standard_point));
  EXPECT_EQ(law.slates[1].size(), 6u * 3);
  for (const Point& point : law.slates[1]) EXPECT_EQ(distance(point, space.standard_point), 1);
  for (const Point& point : law.slates[2]) EXPECT_GT(distance(point, space.standard_point), 1);
  // That finds the best of a law of single groups.
  EXPECT_THAT(found.proposals, ElementsAre(law.order().front()));
  EXPECT_EQ(found.scores[0].estimate, law(found.proposals[0]));
  EXPECT_EQ(found.standard.estimate, law(space.standard_point));
}

TEST(ConfigSearch, AStartScoresNoConfigurationTwiceAndNoMoreThanItsShare) {
  const ConfigSpace space = space_of(8, 5);
  for (const std::int64_t evaluations : {1, 7, 100, 3001}) {
    Law law(space);
    const SearchResult found =
        find(law, space, {.evaluations = evaluations, .starts = 1, .propose = 3});
    EXPECT_EQ(found.evaluations, evaluations);
    std::multiset<Point> scored = law.scored();
    scored.erase(scored.find(space.standard_point));  // scored once more for its own score
    EXPECT_EQ(std::ssize(scored), evaluations);
    EXPECT_EQ(std::ssize(std::set(scored.begin(), scored.end())), evaluations);
  }
  for (const int starts : {2, 3, 7}) {
    Law law(space);
    const SearchResult found = find(law, space, {.evaluations = 1000, .starts = starts}, 3);
    EXPECT_EQ(found.evaluations, 1000);
    EXPECT_EQ(law.scored().size(), 1001u);
  }
}

TEST(ConfigSearch, ProposalsAreTheBestThatDifferEnough) {
  const ConfigSpace space = space_of(8, 2);
  for (const int propose : {1, 5, 30, 60, 255, 300}) {
    Law law(space);
    const SearchResult found = find(law, space, {.evaluations = 100'000, .propose = propose});
    const std::multiset<Point> scored = law.scored();
    ASSERT_EQ(std::ssize(std::set(scored.begin(), scored.end())), 256);
    // The largest distance, at most a quarter of the groups, that leaves enough.
    std::vector<Point> expected;
    int apart = 2;
    for (; apart > 0; --apart) {
      expected.clear();
      for (const Point& point : law.order()) {
        if (point != space.standard_point && std::ssize(expected) < propose &&
            std::ranges::all_of(expected,
                                [&](const Point& own) { return distance(own, point) >= apart; }))
          expected.push_back(point);
      }
      if (std::ssize(expected) == std::min(propose, 255) || apart == 1) break;
    }
    EXPECT_EQ(found.proposals, expected) << propose;
    EXPECT_EQ(found.apart, apart) << propose;
    EXPECT_TRUE(std::ranges::is_sorted(found.scores, {}, &PointScore::estimate));
  }
}

TEST(ConfigSearch, BeginsAtTheGivenPointsAndGoesOnFromKnownOnes) {
  const ConfigSpace space = space_of(8, 5);
  const Point one(8, 1), two(8, 2), three(8, 3);
  Law law(space);
  find(law, space, {.evaluations = 4, .starts = 4, .first = {one, two}, .known = {three}});
  EXPECT_EQ(law.scored(), (std::multiset<Point>{one, two, three, three, space.standard_point}));
}

TEST(ConfigSearch, IsTheSameOnAnyNumberOfThreadsAndAgain) {
  const ConfigSpace space = space_of(10, 4);
  const SearchOptions options{.evaluations = 4000, .starts = 5};
  Law law(space);
  const SearchResult expected = find(law, space, options);
  EXPECT_EQ(expected.proposals.size(), 10u);
  for (const int threads : {1, 2, 5}) {
    Law again(space);
    expect_equal(find(again, space, options, threads), expected);
    EXPECT_EQ(again.scored(), law.scored()) << threads;
  }
  Law other(space);
  SearchOptions seed = options;
  seed.seed = 2;
  find(other, space, seed);
  EXPECT_NE(other.scored(), law.scored());
}

// Starts side by side want the same as one after another, and share slates.
TEST(ConfigSearch, IsTheSameInSlatesOfSeveralStarts) {
  const ConfigSpace space = space_of(7, 5);
  SearchOptions options{.evaluations = 1000, .starts = 5, .propose = 4};
  Law alone(space), together(space), halves(space);
  const SearchResult expected = find(alone, space, options);
  options.any_slate = true;
  expect_equal(find(together, space, options), expected);
  EXPECT_EQ(together.scored(), alone.scored());
  EXPECT_LT(2 * together.slates.size(), alone.slates.size());
  expect_equal(find(halves, space, options, 2), expected);
  EXPECT_EQ(halves.scored(), alone.scored());
}

// More ranks than starts, too.
TEST(ConfigSearch, IsTheSameOnAnyNumberOfRanks) {
  const ConfigSpace space = space_of(10, 4);
  const SearchOptions options{.evaluations = 3000, .starts = 4};
  Law law(space);
  const SearchResult expected = find(law, space, options);
  for (const int ranks : {2, 3, 6}) {
    Meeting meeting(ranks);
    Law shared(space);
    std::vector<SearchResult> found(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadComm world(meeting, rank);
        ThreadPool pool(1);
        NoProgress progress;
        JobContext context{world, pool, NodeTopology{}, progress};
        found[static_cast<std::size_t>(rank)] =
            find_configs(space, shared.scorer(), options, context);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const SearchResult& own : found) expect_equal(own, expected);
  }
}

TEST(ReferencePoints, AreTheDefaultAndOthersThatDiffer) {
  const ConfigSpace space = space_of(6, 4);
  const std::vector<Point> points = reference_points(space, 100, 7);
  EXPECT_EQ(points.size(), 100u);
  EXPECT_EQ(points.front(), space.standard_point);
  EXPECT_EQ(std::set(points.begin(), points.end()).size(), 100u);
  EXPECT_EQ(reference_points(space, 100, 7), points);
  EXPECT_NE(reference_points(space, 100, 8), points);
  EXPECT_EQ(reference_points(space_of(2, 2), 100, 7).size(), 4u);
}

// Predictions in memory.
struct Predictions : PredictionSource {
  PredictionsCase content = system_run(1, 0);
  const PredictionsHeader& header() const override { return content.header; }
  PredictionRows read(int graph) const override { return content.graphs[graph]; }
};

// Six validation graphs, which both members have not seen, choose; the training graphs, which one
// member has seen, do not. Five families are enough.
TEST(Pessimism, IsTheSmallestWeightWithTheFastestBestOfTen) {
  Predictions predictions;
  EXPECT_EQ(chosen_pessimism(predictions).graphs, 0);  // of four families
  auto& graphs = predictions.content.header.graphs;
  for (std::size_t g = 0; g < graphs.size(); ++g) graphs[g].name = std::string(3, 'a' + g);
  EXPECT_EQ(chosen_pessimism(predictions).graphs, 6);
  EXPECT_EQ(chosen_pessimism(predictions).share, 0);
  // Ten slow configurations that one member puts far ahead of all.
  for (PredictionRows& rows : predictions.content.graphs) {
    rows.scores.assign(2, {});
    rows.runtime.clear();
    for (int k = 0; k < 200; ++k) {
      const bool slow = k < 10;
      rows.runtime.push_back(slow ? 5000 : 1000 + k);
      rows.scores[0].push_back(slow ? -6 : 0.01 * k - 1);
      rows.scores[1].push_back(slow ? 0 : 0.01 * k - 1);
    }
  }
  EXPECT_EQ(chosen_pessimism(predictions).graphs, 6);
  EXPECT_GT(chosen_pessimism(predictions).share, 0);
  for (PredictionEntry& graph : graphs) graph.split = "test";
  EXPECT_EQ(chosen_pessimism(predictions).graphs, 0);
  EXPECT_EQ(chosen_pessimism(predictions).share, 0.5);
}

}  // namespace
}  // namespace tpudist::test
