#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "statistics/run_order.hpp"

namespace tpudist {

// In which order the configurations of a graph were measured. In a random one neighbours have
// nothing in common, so that any pattern of the run times over their order comes from the machine;
// a search or an enumeration makes patterns of its own, and only repeated measurements of equal
// configurations and frozen values tell of the machine.
enum class MeasuredOrder { random, searched };

// What is asked of the run times of a graph, without any model.
enum class CheckKind {
  drift,                // run times rise or fall over their order (drift_of); random order only
  block,                // a block of measurements is unlike all
  frozen,               // equal run times of different configurations in a row
                        // (longest_repetition_of)
  repeat_drift,         // repeated measurements rise or fall against their configuration's median
  repeat_block,         // repeats of a block lie unusually far from, or near to, that median
  repeat_outliers,      // share of repeats that lie far from it
  repeat_disagreement,  // how far repeats differ, against unrelated measurements: 0 to
                        // about 1
};
std::string_view name_of(CheckKind kind);

// The outcome of one check of one graph.
struct MeasurementCheck {
  CheckKind kind = CheckKind::drift;
  double value = 0;
  double limit = 0;  // a graph is suspect only beyond it; docs/data.md says why
  double by_chance = 0;
  // Probability of such a value where order tells nothing; 0 for the last two checks, which are no
  // question of chance.
  double p = 1;
  std::int64_t first_row = 0, last_row = 0;  // where it shows: rows of the graph

  // Beyond the limit, and too improbable for any of `checks` checks that were made side by side
  // (Bonferroni at 0.01).
  bool is_suspect(std::int64_t checks) const;
};

// Rows whose configuration was measured more than once.
struct RepeatedRows {
  std::vector<std::int64_t> rows;  // rising
  // Of each, the logarithm of its time minus the median of those of its configuration.
  std::vector<double> deviations;
};

// `times` [n] are positive, `config` [n] numbers equal configurations equally, from 0 on. Throws
// Error where lengths differ, and DataError where a time is not positive.
RepeatedRows repeated_rows(std::span<const double> times, std::span<const std::int32_t> config);

// All checks that `order` allows and for which there are enough measurements (100; of
// repeated ones 100, for the last two 20 pairs). `key` draws what is drawn.
std::vector<MeasurementCheck> check_measurements(std::span<const double> times,
                                                 std::span<const std::int32_t> config,
                                                 MeasuredOrder order, std::uint64_t key);

// One line of evidence, such as "block: measurements 400 to 499 diverge by 1.93 bits from all (by
// chance 0.16, p 2e-31)".
std::string describe(const MeasurementCheck& check);

}  // namespace tpudist
