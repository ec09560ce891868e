#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// The measurements of one graph, grouped by configuration. Plain data; memory proportional to the
// rows.
struct MeasuredConfigs {
  std::vector<double> log_times;    // [n] natural logarithms, grouped by configuration
  std::vector<std::int64_t> rows;   // [n] the measurement behind each value
  std::vector<std::int64_t> begin;  // [C + 1] configuration c has begin[c] .. begin[c + 1] - 1
  bool whole = false;               // whether all times are whole numbers (nanoseconds)

  std::int64_t configs() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::span<const double> times_of(std::int64_t config) const;
  // Of the logarithms. The median of an even number of values is the mean of the middle two.
  double mean_of(std::int64_t config) const;
  double median_of(std::int64_t config) const;
};

// Says in one line why these run times have no logarithms: "run time 0 of measurement 3 is not
// positive and finite"; empty if they have.
std::string fault_of_times(std::span<const double> times);

// `times` [n] must be positive; `config` [n] has equal numbers, of any value, for equal
// configurations. Configurations are in the order of their first measurements; each keeps the order
// of its measurements. Throws Error if lengths differ, and DataError with fault_of_times.
MeasuredConfigs measured_configs(std::span<const double> times,
                                 std::span<const std::int32_t> config);

}  // namespace tpudist
