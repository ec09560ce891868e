#include "statistics/ranking/metrics.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "tests/support/level_sequence.hpp"
#include "tests/support/noisy_graph.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(KendallTauB, EqualsSciPy) {
  struct Golden {
    int n;
    std::uint64_t levels_x, levels_y;
    double tau;
  };
  // Printed by tests/golden/metrics.py.
  const Golden goldens[] = {
      {2, 1000, 1000, 1.0},
      {5, 4, 4, 0.8819171036881969},
      {10, 5, 100, 0.562440991821405},
      {25, 3, 3, 0.6817779603138536},
      {60, 2, 40, 0.5553887946566198},
      {100, 1000, 1000, 0.5063700811324997},
      {257, 20, 50, 0.47984164677297103},
      {1000, 1000000, 1000000, 0.4905170075247778},
      {1000, 7, 900, 0.5085357946305742},
      {2000, 300, 5, 0.5232611021567645},
      {2000, 1000000000, 2000, 0.5268995611495045},
  };
  for (const Golden& golden : goldens) {
    const Values x = test::level_sequence(golden.n, golden.n + 1, golden.levels_x);
    const Values noise = test::level_sequence(golden.n, golden.n + 2, golden.levels_y);
    Values y, falling;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto level = static_cast<std::uint64_t>(x[i]) * golden.levels_y / golden.levels_x;
      y.push_back(std::floor((static_cast<double>(level) + noise[i]) / 2));
      falling.push_back(-y.back());
    }
    EXPECT_EQ(kendall_tau_b(x, y), golden.tau) << "n = " << golden.n;
    EXPECT_DOUBLE_EQ(kendall_tau_b(y, x), golden.tau) << "n = " << golden.n;
    EXPECT_EQ(kendall_tau_b(x, falling), -golden.tau) << "n = " << golden.n;
  }
}

TEST(KendallTauB, SmallCases) {
  EXPECT_EQ(kendall_tau_b(Values{1, 2, 3}, Values{10, 20, 30}), 1);
  EXPECT_EQ(kendall_tau_b(Values{1, 2, 3}, Values{30, 20, 10}), -1);
  EXPECT_DOUBLE_EQ(kendall_tau_b(Values{1, 2, 3, 4}, Values{1, 3, 2, 4}), (5.0 - 1) / 6);
  EXPECT_DOUBLE_EQ(kendall_tau_b(Values{1, 1, 2}, Values{1, 2, 3}), 2 / std::sqrt(6.0));
  EXPECT_DOUBLE_EQ(kendall_tau_b(Values{-0.0, 0.0, 1}, Values{5, 5, 6}),
                   1);  // zeros of both signs tie
  EXPECT_EQ(kendall_tau_b(Values{-kInfinity, 0, kInfinity}, Values{1, 2, 3}), 1);
}

TEST(KendallTauB, IsNotANumberWhereNothingCanBeRanked) {
  EXPECT_TRUE(std::isnan(kendall_tau_b({}, {})));
  EXPECT_TRUE(std::isnan(kendall_tau_b(Values{1}, Values{1})));
  EXPECT_TRUE(std::isnan(kendall_tau_b(Values{1, 1, 1}, Values{1, 2, 3})));
  EXPECT_TRUE(std::isnan(kendall_tau_b(Values{1, 2, 3}, Values{4, 4, 4})));
}

TEST(Metrics, RefuseWhatCannotBeRanked) {
  const Values two{1, 2}, three{1, 2, 3}, with_nan{1, std::nan("")};
  EXPECT_THROW(kendall_tau_b(two, three), Error);
  EXPECT_THROW(ordered_pair_accuracy(two, three), Error);
  EXPECT_THROW(slowdown_at(two, three, 1), Error);
  EXPECT_THROW(slowdown_at(two, two, 0), Error);
  EXPECT_THROW(kendall_tau_b(two, with_nan), DataError);
  EXPECT_THROW(ordered_pair_accuracy(with_nan, two), DataError);
  EXPECT_THROW(slowdown_at(with_nan, two, 1), DataError);
  EXPECT_THROW(tile_score(with_nan, two), DataError);
}

TEST(KendallTauB, CountsPairsBeyond32Bits) {
  // 100,000 values: 5e9 pairs. Swapping neighbours gives exactly n/2 discordant pairs.
  constexpr std::int64_t n = 100'000;
  Values x(n), y(n);
  std::iota(x.begin(), x.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<double>(i ^ 1);
  const double all = n * (n - 1) / 2;
  EXPECT_EQ(kendall_tau_b(x, y), (all - n) / std::sqrt(all) / std::sqrt(all));
  EXPECT_EQ(ordered_pair_accuracy(x, y), (all - n / 2) / all);
}

TEST(OrderedPairAccuracy, CountsATieInTheScoresAsWrong) {
  EXPECT_EQ(ordered_pair_accuracy(Values{1, 2, 3}, Values{1, 2, 3}), 1);
  EXPECT_EQ(ordered_pair_accuracy(Values{3, 2, 1}, Values{1, 2, 3}), 0);
  EXPECT_EQ(ordered_pair_accuracy(Values{1, 1, 1}, Values{1, 2, 3}), 0);
  EXPECT_DOUBLE_EQ(ordered_pair_accuracy(Values{1, 1, 2}, Values{1, 2, 3}), 2.0 / 3);
  EXPECT_EQ(ordered_pair_accuracy(Values{1, 2, 9}, Values{1, 1, 2}), 1);  // (0, 1) does not count
  EXPECT_TRUE(std::isnan(ordered_pair_accuracy(Values{1, 2}, Values{4, 4})));
  EXPECT_TRUE(std::isnan(ordered_pair_accuracy({}, {})));
}

TEST(Slowdown, ComparesTheBestOfTheChosenWithTheBest) {
  const Values score{4, 1, 3, 2}, target{10, 30, 20, 15};
  EXPECT_DOUBLE_EQ(slowdown_at(score, target, 1), 2.0);
  EXPECT_DOUBLE_EQ(slowdown_at(score, target, 2), 0.5);
  EXPECT_DOUBLE_EQ(slowdown_at(score, target, 3), 0.5);
  EXPECT_DOUBLE_EQ(slowdown_at(score, target, 4), 0.0);
  EXPECT_DOUBLE_EQ(slowdown_at(score, target, 100), 0.0);
  EXPECT_DOUBLE_EQ(slowdown_at(Values{7, 7, 7}, Values{2, 1, 1}, 1), 1.0);  // ties go by index
  EXPECT_TRUE(std::isnan(slowdown_at({}, {}, 1)));
  EXPECT_TRUE(std::isnan(slowdown_at(Values{1, 2}, Values{0, 0}, 1)));
}

TEST(TileScore, TakesTheBestOfFive) {
  const Values score{1, 2, 3, 4, 5, 6}, target{20, 14, 12, 18, 16, 10};
  EXPECT_DOUBLE_EQ(tile_score(score, target), 2 - 12.0 / 10);
  EXPECT_DOUBLE_EQ(tile_score(Values{2, 1}, Values{3, 5}), 1);
  EXPECT_TRUE(std::isnan(tile_score(Values{2, 1}, Values{0, 0})));
}

// Few levels make ties, many make none.
std::pair<Values, Values> random_pair() {
  const int levels = *rc::gen::element(2, 5, 1000);
  const auto small = rc::gen::inRange(-levels, levels);
  const auto pairs =
      *rc::gen::container<std::vector<std::pair<int, int>>>(rc::gen::pair(small, small));
  std::pair<Values, Values> both;
  for (const auto& [x, y] : pairs) {
    both.first.push_back(x / 2.0);
    both.second.push_back(y / 2.0);
  }
  return both;
}

int sign(double a, double b) {
  return (a > b) - (a < b);
}

RC_GTEST_PROP(MetricsProperty, EqualTheDefinitionOverAllPairs, ()) {
  const auto [x, y] = random_pair();
  std::int64_t agreement = 0, differ_x = 0, differ_y = 0, right = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = i + 1; j < x.size(); ++j) {
      agreement += sign(x[i], x[j]) * sign(y[i], y[j]);
      differ_x += x[i] != x[j];
      differ_y += y[i] != y[j];
      right += y[i] != y[j] && sign(x[i], x[j]) == sign(y[i], y[j]);
    }
  }
  const double tau = kendall_tau_b(x, y);
  if (differ_x == 0 || differ_y == 0) {
    RC_ASSERT(std::isnan(tau));
  } else {
    const double expected = static_cast<double>(agreement) /
                            std::sqrt(static_cast<double>(differ_x)) /
                            std::sqrt(static_cast<double>(differ_y));
    RC_ASSERT(tau == std::clamp(expected, -1.0, 1.0));
  }
  const double accuracy = ordered_pair_accuracy(x, y);
  if (differ_y == 0) {
    RC_ASSERT(std::isnan(accuracy));
  } else {
    RC_ASSERT(accuracy == static_cast<double>(right) / static_cast<double>(differ_y));
  }
}

RC_GTEST_PROP(MetricsProperty, SlowdownEqualsAFullStableSort, ()) {
  auto [score, target] = random_pair();
  RC_PRE(!score.empty());
  for (double& t : target) t += 2000;
  const std::int64_t k = *rc::gen::inRange(1, 20);
  std::vector<std::size_t> order(score.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return score[i]; });
  order.resize(std::min<std::size_t>(order.size(), k));
  double chosen = kInfinity;
  for (const std::size_t i : order) chosen = std::min(chosen, target[i]);
  RC_ASSERT(slowdown_at(score, target, k) == chosen / *std::ranges::min_element(target) - 1);
}

// The largest graph has 100,040 configurations and is evaluated often: 30 ms here, and a wide limit
// for slow machines and sanitizers.
TEST(KendallTauB, IsFastForTheLargestGraph) {
  CounterRng random(1);
  Values x(100'040), y(100'040);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = random.uniform();
    y[i] = x[i] + random.uniform();
  }
  const auto begin = std::chrono::steady_clock::now();
  const double tau = kendall_tau_b(x, y);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds", static_cast<int>(1000 * seconds.count()));
  EXPECT_GT(tau, 0.4);
  EXPECT_LT(tau, 0.6);
  EXPECT_LT(seconds.count(), 1.0);
}

using Values = std::vector<double>;
using Configs = std::vector<std::int32_t>;

// The jackknife by its definition: tau-b anew without each configuration.
double by_definition(const Values& x, const Values& y, const Configs& config) {
  Values without;
  for (std::int32_t gone = 0; gone <= *std::ranges::max_element(config); ++gone) {
    Values left_x, left_y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (config[i] == gone) continue;
      left_x.push_back(x[i]);
      left_y.push_back(y[i]);
    }
    without.push_back(kendall_tau_b(left_x, left_y));
  }
  const auto n = static_cast<double>(without.size());
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / n;
  double squares = 0;
  for (const double tau : without) squares += (tau - mean) * (tau - mean);
  return std::sqrt((n - 1) / n * squares);
}

TEST(TauSamplingDeviation, EqualsTheJackknifeWithTiesAndRepeats) {
  for (std::uint64_t key = 0; key < 20; ++key) {
    CounterRng random(key);
    Values x, y;
    Configs config;
    for (int i = 0; i < 60; ++i) {
      config.push_back(static_cast<std::int32_t>(i < 25 ? i : random.below(25)));
      x.push_back(static_cast<double>(random.below(12)));
      y.push_back(x.back() + static_cast<double>(random.below(9)));
    }
    EXPECT_NEAR(tau_sampling_deviation(x, y, config), by_definition(x, y, config), 1e-12) << key;
    Configs single(x.size());
    std::iota(single.begin(), single.end(), 0);
    EXPECT_NEAR(tau_sampling_deviation(x, y), by_definition(x, y, single), 1e-12) << key;
  }
}

// 0.034, 0.010 and 0.005 for 100, 1,000 and 5,000 configurations at a tau of 0.7.
TEST(TauSamplingDeviation, IsThatOfBivariateNormalRankings) {
  const double correlation = std::sin(0.7 * M_PI / 2);
  const auto deviation_of = [&](int n, std::uint64_t key) {
    CounterRng random(key);
    Values x, y;
    for (int i = 0; i < n; ++i) {
      x.push_back(random.normal());
      y.push_back(correlation * x.back() +
                  std::sqrt(1 - correlation * correlation) * random.normal());
    }
    return std::pair(kendall_tau_b(x, y), tau_sampling_deviation(x, y));
  };
  EXPECT_NEAR(deviation_of(1000, 1).second, 0.010, 0.0015);
  EXPECT_NEAR(deviation_of(5000, 2).second, 0.0045, 0.0006);
  // It says how far tau moves from one sample to the next.
  double sum = 0, squares = 0, said = 0;
  for (std::uint64_t key = 0; key < 400; ++key) {
    const auto [tau, deviation] = deviation_of(100, 10 + key);
    sum += tau, squares += tau * tau, said += deviation / 400;
  }
  EXPECT_NEAR(said, std::sqrt(squares / 400 - sum * sum / 160000), 0.003);
  EXPECT_NEAR(said, 0.034, 0.002);
}

TEST(TauSamplingDeviation, IsUndefinedForTwoConfigurationsOrAConstant) {
  EXPECT_TRUE(
      std::isnan(tau_sampling_deviation(Values{1, 2, 3}, Values{1, 2, 3}, Configs{0, 1, 1})));
  EXPECT_TRUE(std::isnan(tau_sampling_deviation(Values{}, Values{})));
  EXPECT_TRUE(std::isnan(tau_sampling_deviation(Values{1, 1, 1, 1}, Values{1, 2, 3, 4})));
  EXPECT_EQ(tau_sampling_deviation(Values{1, 2, 3, 4}, Values{1, 2, 3, 4}), 0);
}

TEST(TauSamplingDeviation, RefusesNanAndOtherLengths) {
  EXPECT_THROW(tau_sampling_deviation(Values{1, NAN, 3}, Values{1, 2, 3}), DataError);
  EXPECT_THROW(tau_sampling_deviation(Values{1, 2}, Values{1, 2, 3}), Error);
  EXPECT_THROW(tied_pair_share(Values{1, 2}, Configs{0}), Error);
}

TEST(TiedPairShare, CountsPairsOfDifferentConfigurations) {
  EXPECT_EQ(tied_pair_share(Values{1, 2, 3}), 0);
  EXPECT_DOUBLE_EQ(tied_pair_share(Values{1, 1, 3}), 1.0 / 3);
  // The pair of configuration 0 does not count: two of the five others are tied.
  EXPECT_DOUBLE_EQ(tied_pair_share(Values{1, 1, 1, 3}, Configs{0, 0, 1, 2}), 2.0 / 5);
  EXPECT_TRUE(std::isnan(tied_pair_share(Values{1, 1}, Configs{0, 0})));
  EXPECT_EQ(tied_pair_share(Values{-0.0, 0.0}), 1);
}

// Why the share is printed: an oracle that ties what noise does not let it tell apart scores more.
TEST(TiedPairShare, TellsOfAScoreThatTiesFlatter) {
  const test::NoisyGraph graph(test::NoisyGraph::smooth, 3000, 0.002, 3);
  Values coarse;
  for (const double time : graph.truth) coarse.push_back(std::round(time / 0.004));
  EXPECT_GT(kendall_tau_b(coarse, graph.times), kendall_tau_b(graph.truth, graph.times) + 0.005);
  EXPECT_GT(tied_pair_share(coarse, graph.config), 0.04);
  EXPECT_EQ(tied_pair_share(graph.truth, graph.config), 0);
}

}  // namespace
}  // namespace tpudist
