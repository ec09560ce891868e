#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// The measurements of one graph by configuration. Plain data; memory in proportion to the rows.
struct MeasuredConfigs {
  std::vector<double> log_times;    // [n] natural logarithms, those of one configuration together
  std::vector<std::int64_t> rows;   // [n] the measurement that each comes from
  std::vector<std::int64_t> begin;  // [C + 1] configuration c has begin[c] .. begin[c + 1] - 1
  bool whole = false;               // whether all times are whole numbers (nanoseconds)

  std::int64_t configs() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::span<const double> times_of(std::int64_t config) const;
  // Of the logarithms; the median of an even number is the mean of the middle two.
  double mean_of(std::int64_t config) const;
  double median_of(std::int64_t config) const;
};

// Why these run times cannot be taken by their logarithms, as one line: "run time 0 of measurement 3
// is not positive and finite"; empty where they can.
std::string fault_of_times(std::span<const double> times);

// `times` [n] are positive; `config` [n] numbers equal configurations equally, by any numbers.
// Configurations stand in the order of their first measurements, those of one in their order. Throws Error where
// lengths differ, and DataError with fault_of_times.
MeasuredConfigs measured_configs(std::span<const double> times,
                                 std::span<const std::int32_t> config);

}  // namespace tpudist
