#include "statistics/noise/measurement_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.hpp"
#include "core/means.hpp"
#include "core/random.hpp"
#include "statistics/noise/measured_configs.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

// Limits of the checks, in the order of CheckKind; docs/data.md gives the values of sound and
// corrupted graphs.
constexpr double kDriftLimit = 0.1;  // Spearman's correlation
constexpr double kBlockLimit = 0.3;  // bits beyond chance
constexpr double kFrozenLimit = 4;   // measurements
constexpr double kRepeatDriftLimit = 0.2;
constexpr double kRepeatBlockLimit = 0.4;
constexpr double kOutlierLimit = 0.01;
constexpr double kDisagreementLimit = 0.5;

// A repeat is an outlier if its deviation exceeds this many times the median deviation, and 0.5 %.
constexpr double kOutlierFactor = 20, kLeastOutlier = 0.005;
constexpr std::int64_t kLeastPairs = 20;

constexpr double kSuspectLevel = 0.01;

enum Stream : std::uint64_t { kTimes = 1, kRepeats, kPairs };

std::vector<double> absolute(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

class Checker {
 public:
  Checker(std::span<const double> times, std::span<const std::int32_t> config, MeasuredOrder order,
          std::uint64_t key)
      : times_(times), config_(config), order_(order), key_(key) {}

  std::vector<MeasurementCheck> run() {
    if (order_ == MeasuredOrder::random) {
      add(CheckKind::drift, drift_of(times_), kDriftLimit);
      add_block(CheckKind::block, block_divergence_of(times_, mix_key({key_, kTimes})),
                kBlockLimit);
    }
    add(CheckKind::frozen, longest_repetition_of(times_, config_), kFrozenLimit);
    repeats_ = repeated_rows(times_, config_);
    add(CheckKind::repeat_drift, of_repeats(drift_of(repeats_.deviations)), kRepeatDriftLimit);
    deviations_ = absolute(repeats_.deviations);
    add_block(CheckKind::repeat_block,
              of_repeats(block_divergence_of(deviations_, mix_key({key_, kRepeats}))),
              kRepeatBlockLimit);
    if (std::ssize(repeats_.rows) >= 2 * kLeastPairs) {
      add_outliers();
      add_disagreement();
    }
    return std::move(checks_);
  }

 private:
  void add(CheckKind kind, const OrderStatistic& found, double limit) {
    if (std::isnan(found.value)) return;
    checks_.push_back({kind, found.value, limit, found.by_chance, found.p, found.first,
                       found.first + found.count - 1});
  }

  // The limit of a divergence is relative to its value by chance.
  void add_block(CheckKind kind, const OrderStatistic& found, double beyond_chance) {
    add(kind, found, found.by_chance + beyond_chance);
  }

  // Converts positions in the series of repeats to rows of the graph.
  OrderStatistic of_repeats(OrderStatistic found) const {
    if (std::isnan(found.value)) return found;
    const std::int64_t last = found.first + found.count - 1;
    found.first = repeats_.rows[static_cast<std::size_t>(found.first)];
    found.count = repeats_.rows[static_cast<std::size_t>(last)] - found.first + 1;
    return found;
  }

  void add_outliers() {
    const double far = std::max(kOutlierFactor * median(deviations_), kLeastOutlier);
    MeasurementCheck check{CheckKind::repeat_outliers, 0, kOutlierLimit, 0, 0, -1, 0};
    for (std::size_t i = 0; i < deviations_.size(); ++i) {
      if (deviations_[i] <= far) continue;
      check.value += 1 / static_cast<double>(deviations_.size());
      if (check.first_row < 0) check.first_row = repeats_.rows[i];
      check.last_row = repeats_.rows[i];
    }
    check.first_row = std::max<std::int64_t>(check.first_row, 0);
    checks_.push_back(check);
  }

  // Mean difference of neighbouring repeats of a configuration, relative to rows drawn from the
  // whole graph: a search may repeat only its fastest configurations, which differ little. A mean,
  // because most configurations of a graph may be equally fast.
  void add_disagreement() {
    double of_repeats = 0, of_all = 0;
    std::int64_t pairs = 0;
    CounterRng random(mix_key({key_, kPairs}));
    const auto logarithm = [&](std::size_t row) { return std::log(times_[row]); };
    const auto any_row = [&] { return random.below(times_.size()); };
    each_config(config_, [&](std::span<const std::size_t> rows) {
      for (std::size_t i = 1; i < rows.size(); ++i) {
        of_repeats += std::abs(logarithm(rows[i]) - logarithm(rows[i - 1]));
        of_all += std::abs(logarithm(any_row()) - logarithm(any_row()));
        ++pairs;
      }
    });
    if (pairs < kLeastPairs || of_all == 0) return;
    checks_.push_back({CheckKind::repeat_disagreement, of_repeats / of_all, kDisagreementLimit, 1,
                       0, 0, std::ssize(times_) - 1});
  }

  const std::span<const double> times_;
  const std::span<const std::int32_t> config_;
  const MeasuredOrder order_;
  const std::uint64_t key_;
  RepeatedRows repeats_;
  std::vector<double> deviations_;  // of the repeats, absolute
  std::vector<MeasurementCheck> checks_;
};

}  // namespace

std::string_view name_of(CheckKind kind) {
  constexpr std::string_view kNames[] = {"drift",
                                         "block",
                                         "frozen",
                                         "repeat drift",
                                         "repeat block",
                                         "repeat outliers",
                                         "repeat disagreement"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool MeasurementCheck::is_suspect(std::int64_t checks) const {
  return std::abs(value) > limit && p * static_cast<double>(checks) < kSuspectLevel;
}

RepeatedRows repeated_rows(std::span<const double> times, std::span<const std::int32_t> config) {
  if (times.size() != config.size())
    throw Error(ErrorKind::failed, "one number of a configuration for each measurement");
  const auto bad = std::ranges::find_if(times, [](double time) { return !(time > 0); });
  if (bad != times.end())
    throw DataError(
        fmt::format("run time {} of measurement {} is not positive", *bad, bad - times.begin()));
  std::vector<double> deviation(times.size(), kNone);
  each_config(config, [&](std::span<const std::size_t> rows) {
    if (rows.size() < 2) return;
    std::vector<double> logarithms;
    for (const std::size_t row : rows) logarithms.push_back(std::log(times[row]));
    const double middle = median(logarithms);
    for (std::size_t i = 0; i < rows.size(); ++i) deviation[rows[i]] = logarithms[i] - middle;
  });
  RepeatedRows repeated;
  for (std::size_t i = 0; i < deviation.size(); ++i) {
    if (std::isnan(deviation[i])) continue;
    repeated.rows.push_back(static_cast<std::int64_t>(i));
    repeated.deviations.push_back(deviation[i]);
  }
  return repeated;
}

std::vector<MeasurementCheck> check_measurements(std::span<const double> times,
                                                 std::span<const std::int32_t> config,
                                                 MeasuredOrder order, std::uint64_t key) {
  return Checker(times, config, order, key).run();
}

std::string describe(const MeasurementCheck& check) {
  const auto text = [&](std::string_view what, auto&&... values) {
    return fmt::format("{}: {}", name_of(check.kind), fmt::format(fmt::runtime(what), values...));
  };
  const std::string chance = fmt::format("p {:.1g}", check.p);
  switch (check.kind) {
    case CheckKind::drift:
      return text("run times {} over their order, rank correlation {:.3f} ({})",
                  check.value > 0 ? "rise" : "fall", check.value, chance);
    case CheckKind::block:
      return text("measurements {} to {} diverge by {:.2f} bits from all (by chance {:.2f}, {})",
                  check.first_row, check.last_row, check.value, check.by_chance, chance);
    case CheckKind::frozen:
      return text("measurements {} to {} have one run time, but different configurations ({})",
                  check.first_row, check.last_row, chance);
    case CheckKind::repeat_drift:
      return text("repeats {} against their configuration's median, rank correlation {:.3f} ({})",
                  check.value > 0 ? "rise" : "fall", check.value, chance);
    case CheckKind::repeat_block:
      return text(
          "repeats in measurements {} to {} diverge by {:.2f} bits from all in how far they lie "
          "from their "
          "configuration's median (by chance {:.2f}, {})",
          check.first_row, check.last_row, check.value, check.by_chance, chance);
    case CheckKind::repeat_outliers:
      return text(
          "{:.1f} % of the repeats, in measurements {} to {}, lie far from their configuration's "
          "median",
          100 * check.value, check.first_row, check.last_row);
    default:
      return text(
          "repeats of a configuration differ by {:.2f} of what unrelated measurements differ by",
          check.value);
  }
}

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
