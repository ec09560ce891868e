#include "statistics/noise/rank_sampling.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "statistics/ranking/metrics.hpp"
#include "tests/support/noisy_graph.hpp"

namespace tpudist {
namespace {

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
