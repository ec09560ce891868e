#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace tpudist {

// A statistic of a series of measurements in the order in which they were made, beside what chance
// makes of it when the order tells nothing.
struct OrderStatistic {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: too few measurements to say
  double by_chance = 0;                                     // mean over shuffled orders
  // Probability of a value at least so extreme in a shuffled order; 1 where `value` is NaN.
  double p = 1;
  std::int64_t first = 0, count = 0;  // the part of the series that it stands for
};

// The fewest measurements that an OrderStatistic is told of.
inline constexpr std::int64_t kLeastMeasurements = 100;

// Spearman's rank correlation of the values with their place in the series: a drift from slow to
// fast (negative) or from fast to slow. Two-sided p by the normal distribution with the exact
// variance 1 / (n - 1) of a random order.
OrderStatistic drift_of(std::span<const double> series);

// Block entropy: the series is cut into blocks of about 100 values (a tenth of a short series, at
// least 25), the values into eight bins of about equally many, and the largest Kullback-Leibler
// divergence in bits between the bins of a block and those of the whole series is told with its
// block: log2(8) - entropy of the block where all bins are equally full. 0: the block is like all
// others; 3: it holds values of one bin alone. Mean by chance and p come from 100 shuffled orders,
// drawn from `key`, by a Gumbel distribution (that of maxima) of their mean and deviation.
OrderStatistic block_divergence_of(std::span<const double> series, std::uint64_t key);

// The longest stretch of exactly equal values in a row that belong to different configurations
// (neighbours of one configuration do not count on). p is the bound n * s^(length - 1), with s the
// probability that two values of the series are equal. `config` [n]: equal numbers are equal
// configurations.
OrderStatistic longest_repetition_of(std::span<const double> series,
                                     std::span<const std::int32_t> config);

}  // namespace tpudist
