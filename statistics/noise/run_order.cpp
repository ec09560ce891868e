#include "statistics/noise/run_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

constexpr int kBins = 8, kShuffles = 100;
constexpr std::int64_t kBlock = 100, kLeastBlock = 25, kBlocksOfAShortSeries = 10;

using Histogram = std::array<double, kBins>;

// The number of the bin of each value, by rank.
std::vector<std::uint8_t> bins_of(std::span<const double> series) {
  const auto n = static_cast<double>(series.size());
  std::vector<std::uint8_t> bins;
  for (const double rank : mean_ranks(series))
    bins.push_back(
        static_cast<std::uint8_t>(std::min<double>(kBins * (rank - 0.5) / n, kBins - 1)));
  return bins;
}

Histogram histogram_of(std::span<const std::uint8_t> bins) {
  Histogram share{};
  for (const std::uint8_t bin : bins) ++share[bin];
  for (double& value : share) value /= static_cast<double>(bins.size());
  return share;
}

double divergence(const Histogram& part, const Histogram& whole) {
  double bits = 0;
  for (int b = 0; b < kBins; ++b) {
    if (part[b] > 0) bits += part[b] * std::log2(part[b] / whole[b]);
  }
  return bits;
}

struct Block {
  std::int64_t first = 0, count = 0;
};

std::vector<Block> blocks_of(std::int64_t n) {
  const std::int64_t size = std::clamp(n / kBlocksOfAShortSeries, kLeastBlock, kBlock);
  const std::int64_t count = std::max<std::int64_t>(n / size, 1);
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = i * n / count;
    blocks.push_back({first, (i + 1) * n / count - first});
  }
  return blocks;
}

// The block with the largest divergence.
OrderStatistic most_divergent(std::span<const std::uint8_t> bins, const std::vector<Block>& blocks,
                              const Histogram& whole) {
  OrderStatistic most;
  for (const Block& block : blocks) {
    const auto part =
        bins.subspan(static_cast<std::size_t>(block.first), static_cast<std::size_t>(block.count));
    const double bits = divergence(histogram_of(part), whole);
    if (bits <= most.value) continue;  // false for the first, where the value is NaN
    most.value = bits;
    most.first = block.first;
    most.count = block.count;
  }
  return most;
}

// Probability that a Gumbel variable of this mean and deviation is at least `value`.
double gumbel_tail(double value, double mean, double deviation) {
  if (deviation == 0) return value > mean ? 0 : 1;
  const double scale = deviation * std::sqrt(6.0) / std::numbers::pi;
  const double at = (value - mean) / scale + std::numbers::egamma;
  return -std::expm1(-std::exp(-at));
}

}  // namespace

OrderStatistic drift_of(std::span<const double> series) {
  OrderStatistic drift;
  if (std::ssize(series) < kLeastMeasurements) return drift;
  const std::vector<double> ranks = mean_ranks(series);
  const auto n = static_cast<double>(ranks.size());
  const double middle = (n + 1) / 2;
  double product = 0, of_ranks = 0, of_places = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double rank = ranks[i] - middle, place = static_cast<double>(i + 1) - middle;
    product += rank * place;
    of_ranks += rank * rank;
    of_places += place * place;
  }
  if (of_ranks == 0) return drift;  // all values are equal
  drift.value = product / std::sqrt(of_ranks * of_places);
  drift.p = std::erfc(std::abs(drift.value) * std::sqrt(n - 1) / std::numbers::sqrt2);
  drift.count = std::ssize(series);
  return drift;
}

OrderStatistic block_divergence_of(std::span<const double> series, std::uint64_t key) {
  const std::int64_t n = std::ssize(series);
  if (n < kLeastMeasurements) return {};
  std::vector<std::uint8_t> bins = bins_of(series);
  const Histogram whole = histogram_of(bins);
  const std::vector<Block> blocks = blocks_of(n);
  OrderStatistic result = most_divergent(bins, blocks, whole);
  double sum = 0, squares = 0;
  CounterRng random(key);
  for (int i = 0; i < kShuffles; ++i) {
    random.shuffle(std::span(bins));
    const double value = most_divergent(bins, blocks, whole).value;
    sum += value;
    squares += value * value;
  }
  result.by_chance = sum / kShuffles;
  const double variance = (squares - sum * result.by_chance) / (kShuffles - 1);
  result.p = gumbel_tail(result.value, result.by_chance, std::sqrt(std::max(variance, 0.0)));
  return result;
}

OrderStatistic longest_repetition_of(std::span<const double> series,
                                     std::span<const std::int32_t> config) {
  if (series.size() != config.size())
    throw Error(ErrorKind::failed, "one number of a configuration for each measurement");
  const std::int64_t n = std::ssize(series);
  if (n < kLeastMeasurements) return {};
  OrderStatistic longest;
  std::int64_t first = 0;
  for (std::int64_t i = 1; i <= n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i < n && series[at] == series[at - 1] && config[at] != config[at - 1]) continue;
    if (i - first > longest.count) {
      longest.first = first;
      longest.count = i - first;
    }
    first = i;
  }
  std::vector<double> sorted(series.begin(), series.end());
  std::ranges::sort(sorted);
  double equal_pairs = 0;
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    const auto end = std::ranges::upper_bound(begin, sorted.end(), *begin);
    const auto count = static_cast<double>(end - begin);
    equal_pairs += count * (count - 1);
    begin = end;
  }
  const auto size = static_cast<double>(n);
  const double equal = equal_pairs / (size * (size - 1));
  longest.value = static_cast<double>(longest.count);
  longest.by_chance = 1;
  longest.p = std::min(1.0, size * std::pow(equal, longest.value - 1));
  return longest;
}

}  // namespace tpudist
