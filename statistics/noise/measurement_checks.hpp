#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// The order in which the configurations of a graph were measured. In a random order neighbours have
// nothing in common, so any pattern of the run times over the order comes from the machine. A
// search or an enumeration makes patterns of its own; then only repeated measurements and frozen
// values tell something about the machine.
enum class MeasuredOrder { random, searched };

// Checks of the run times of a graph. No check uses a model.
enum class CheckKind {
  drift,                // run times rise or fall over the measuring order (drift_of); random order
                        // only
  block,                // one block of measurements differs from the rest (block_divergence_of)
  frozen,               // the same run time for different configurations in a row
                        // (longest_repetition_of)
  repeat_drift,         // repeats rise or fall relative to their configuration's median
  repeat_block,         // the repeats of one block lie unusually far from, or near to, that median
  repeat_outliers,      // share of repeats that lie far from that median
  repeat_disagreement,  // spread of repeats relative to that of unrelated measurements: 0 to about
                        // 1
};
std::string_view name_of(CheckKind kind);

// The result of one check of one graph.
struct MeasurementCheck {
  CheckKind kind = CheckKind::drift;
  double value = 0;
  double limit = 0;  // a graph is suspect only above `limit`; reasons: docs/data.md
  double by_chance = 0;
  // Probability of such a value if the order has no effect; 0 for the last two checks, which do not
  // test for chance.
  double p = 1;
  std::int64_t first_row = 0, last_row = 0;  // rows of the graph with the finding

  // Above the limit, and significant at 0.01 with Bonferroni's correction for `checks` checks.
  bool is_suspect(std::int64_t checks) const;
};

// Rows whose configuration was measured more than once.
struct RepeatedRows {
  std::vector<std::int64_t> rows;  // ascending
  // For each row, the log of its time minus the median log time of its configuration.
  std::vector<double> deviations;
};

// `times` [n] must be positive; `config` [n] has equal numbers, from 0, for equal configurations.
// Throws Error if lengths differ, and DataError if a time is not positive.
RepeatedRows repeated_rows(std::span<const double> times, std::span<const std::int32_t> config);

// All checks that `order` allows and that have enough measurements: 100, or 100 repeats; 40 repeats
// for the last two checks. Random draws depend on `key`.
std::vector<MeasurementCheck> check_measurements(std::span<const double> times,
                                                 std::span<const std::int32_t> config,
                                                 MeasuredOrder order, std::uint64_t key);

// One line of evidence, such as "block: measurements 400 to 499 diverge by 1.93 bits from all (by
// chance 0.16, p 2e-31)".
std::string describe(const MeasurementCheck& check);

}  // namespace tpudist
