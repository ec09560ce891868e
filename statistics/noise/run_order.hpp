#pragma once

#include <cstdint>
#include <span>

#include "core/means.hpp"

namespace tpudist {

// A statistic of a series in measuring order, compared with its values in random order.
struct OrderStatistic {
  double value = kNone;  // NaN: too few measurements
  double by_chance = 0;  // mean over shuffled orders
  // Probability of a value at least as extreme in a random order; 1 if `value` is NaN.
  double p = 1;
  std::int64_t first = 0, count = 0;  // the part of the series described
};

// The fewest measurements for an OrderStatistic.
inline constexpr std::int64_t kLeastMeasurements = 100;

// Spearman's rank correlation of the values with their position in the series: negative if times
// fall, positive if they rise. Two-sided p from the normal distribution with the exact variance 1 /
// (n - 1) of a random order.
OrderStatistic drift_of(std::span<const double> series);

// Block divergence. The series is cut into blocks of about 100 values (a tenth of a short series,
// at least 25), and the values into eight bins of about equal counts. The value is the largest
// Kullback-Leibler divergence, in bits, between the bins of one block and of the whole series. With
// equally full bins it is log2(8) - entropy of the block. 0: the block is like all others; 3: its
// values are in one bin. by_chance and p come from 100 shuffled orders, drawn by `key`: a Gumbel
// distribution (that of maxima) with their mean and deviation.
OrderStatistic block_divergence_of(std::span<const double> series, std::uint64_t key);

// The longest stretch of exactly equal consecutive values whose neighbours are of different
// configurations. p is the bound n * s^(length - 1), where s is the probability that two values of
// the series are equal. `config` [n]: equal numbers are equal configurations.
OrderStatistic longest_repetition_of(std::span<const double> series,
                                     std::span<const std::int32_t> config);

}  // namespace tpudist
