#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/means.hpp"
#include "statistics/comparison.hpp"
#include "statistics/distributions.hpp"

namespace tpudist {
namespace {

// One common spread is assumed unless the test contradicts it. In simulations of 3 and 8 systems of
// 2 to 10 runs, one with 1, 3 or 10 times the others' spread, at most 6 % then have any pair called
// different (bench/statistics_calibration); with the usual 0.05 it would be up to 14 %.
constexpr double kOneSpread = 0.5;  // p of Bartlett's test
constexpr double kFewestRuns = 3;   // two runs say too little about a spread

struct Spread {
  double mean = 0, variance = 0, runs = 0;
};

std::vector<Spread> spreads_of(std::span<const std::vector<double>> run_means) {
  if (run_means.size() < 2) throw Error(ErrorKind::failed, "one system has no pair");
  std::vector<Spread> spreads;
  for (const std::vector<double>& own : run_means) {
    if (own.size() < 2)
      throw Error(ErrorKind::failed, fmt::format("{} runs have no spread", own.size()));
    const auto runs = static_cast<double>(own.size());
    const double centre = mean(own);
    spreads.push_back({centre, squares_around(own, centre) / (runs - 1), runs});
  }
  return spreads;
}

VarianceEstimate pooled_variance(std::span<const Spread> spreads) {
  VarianceEstimate pooled;
  for (const Spread& own : spreads) {
    pooled.variance += (own.runs - 1) * own.variance;
    pooled.degrees += own.runs - 1;
  }
  pooled.variance /= pooled.degrees;
  return pooled;
}

// Bartlett, Proceedings of the Royal Society A 1937.
bool spreads_are_equal(std::span<const Spread> spreads, const VarianceEstimate& pooled) {
  double statistic = 0, correction = -1 / pooled.degrees;
  for (const Spread& own : spreads) {
    if (own.runs < kFewestRuns) return false;
    if (own.variance == 0) return pooled.variance == 0;
    statistic += (own.runs - 1) * std::log(pooled.variance / own.variance);
    correction += 1 / (own.runs - 1);
  }
  const auto degrees = static_cast<double>(spreads.size() - 1);
  return statistic / (1 + correction / (3 * degrees)) <
         chi_square_quantile(1 - kOneSpread, degrees);
}

// Adjusts p values for their number by Holm's steps.
void adjust_by_holm(std::vector<PairDifference>& pairs) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return pairs[i].p; });
  double least = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    double& p = pairs[order[i]].p;
    p = least = std::max(least, std::min(1.0, static_cast<double>(order.size() - i) * p));
  }
}

// A system's mean keeps the share tau^2 / (tau^2 + its own error^2) of its distance from the mean
// of all; tau^2 is the variance of the means beyond their errors.
std::vector<double> shrunk_means(std::span<const Spread> spreads, const VarianceEstimate& pooled,
                                 bool one_spread) {
  if (spreads.size() < 3) return {};
  std::vector<double> means, errors;
  for (const Spread& own : spreads) {
    means.push_back(own.mean);
    errors.push_back((one_spread ? pooled.variance : own.variance) / own.runs);
  }
  const double centre = mean(means);
  const double between =
      squares_around(means, centre) / static_cast<double>(means.size() - 1) - mean(errors);
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double kept = between <= 0 ? 0 : between / (between + errors[i]);
    means[i] = centre + kept * (means[i] - centre);
  }
  return means;
}

}  // namespace

AllPairs all_pairs(std::span<const std::vector<double>> run_means) {
  const std::vector<Spread> spreads = spreads_of(run_means);
  const VarianceEstimate pooled = pooled_variance(spreads);
  const int count = static_cast<int>(spreads.size());
  AllPairs result;
  result.one_spread = count > 2 && spreads_are_equal(spreads, pooled);
  const double number = count * (count - 1) / 2.0;
  const double range =
      result.one_spread ? range_quantile(kIntervalLevel, count, pooled.degrees) : 0;
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      const Spread &a = spreads[static_cast<std::size_t>(i)],
                   &b = spreads[static_cast<std::size_t>(j)];
      const double difference = a.mean - b.mean;
      PairDifference& pair = result.pairs.emplace_back(PairDifference{i, j, {}, 1});
      if (result.one_spread) {
        const double error = std::sqrt(pooled.variance * (1 / a.runs + 1 / b.runs));
        const double half = range / std::sqrt(2.0) * error;
        pair.interval = {difference, error, pooled.degrees, difference - half, difference + half};
        pair.p = error == 0 ? t_test_p(pair.interval)
                            : 1 - range_probability(std::sqrt(2.0) * std::abs(difference) / error,
                                                    count, pooled.degrees);
      } else {
        pair.interval =
            difference_interval(run_means[static_cast<std::size_t>(i)],
                                run_means[static_cast<std::size_t>(j)], 1 - kSignificance / number);
        pair.p = t_test_p(pair.interval);
      }
    }
  }
  if (!result.one_spread) adjust_by_holm(result.pairs);
  result.shrunk = shrunk_means(spreads, pooled, result.one_spread);
  return result;
}

}  // namespace tpudist
